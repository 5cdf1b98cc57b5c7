import { ApiError } from "../api/error";

// What happened, and what to do about it.
export function ErrorBox({ error }: { error: unknown }) {
  const message = error instanceof Error ? error.message : String(error);
  const remedy = error instanceof ApiError ? error.remedy : "";
  const issues = error instanceof ApiError ? error.issues : [];
  return (
    <div role="alert" className="rounded-md border border-danger/40 bg-danger/8 px-3 py-2 text-sm">
      <p className="font-medium break-words text-danger-text">{message}</p>
      {issues.length > 1 && (
        <ul className="mt-1 list-disc pl-5">
          {issues.map((issue) => <li key={issue.path + issue.message}><code>{issue.path}</code> {issue.message}</li>)}
        </ul>
      )}
      {remedy && <p className="mt-1 break-words">{capital(remedy)}</p>}
      {error instanceof ApiError && <p className="mt-1 text-xs text-muted">{error.code}</p>}
    </div>
  );
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
