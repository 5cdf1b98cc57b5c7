import { useId, type ReactNode } from "react";

export const input =
  "w-full rounded-md border border-line bg-surface px-2.5 py-1.5 text-sm placeholder:text-muted " +
  "aria-[invalid=true]:border-danger disabled:bg-hover disabled:opacity-70";

interface Props {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  required?: boolean;
  // Given the id of the control, and that of the text that describes it.
  children: (id: string, describedBy: string | undefined) => ReactNode;
}

export function Field({ label, hint, error, required, children }: Props) {
  const id = useId();
  const describedBy = hint || error ? `${id}-about` : undefined;
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
        {required && <span className="text-danger" aria-hidden="true"> *</span>}
      </label>
      {children(id, describedBy)}
      {describedBy && (
        <div id={describedBy} className="text-xs">
          {error && <p className="text-danger" role="alert">{error}</p>}
          {hint && <p className="text-muted">{hint}</p>}
        </div>
      )}
    </div>
  );
}
