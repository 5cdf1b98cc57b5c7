import { useMemo } from "react";
import type { Transcript, TranscriptEntry } from "../api/types";
import { ErrorBox } from "../ui/error-box";
import { useTranscript } from "./use-transcript";

// What an agent was asked, what it said and did, and what that took.
export function TranscriptView({ run }: { run: string }) {
  const { facts, entries, error } = useTranscript(run);
  const results = useMemo(() => {
    const byCall = new Map<string, TranscriptEntry>();
    for (const entry of entries) if (entry.kind === "tool_result" && entry.toolId) byCall.set(entry.toolId, entry);
    return byCall;
  }, [entries]);
  const calls = useMemo(() => new Set(entries.filter((entry) => entry.kind === "tool_call").map((entry) => entry.toolId)), [entries]);
  const shown = entries.filter((entry) => entry.kind !== "tool_result" || !calls.has(entry.toolId));
  return (
    <div className="flex flex-col gap-3">
      {facts && <Numbers facts={facts} />}
      {error !== undefined && <ErrorBox error={error} />}
      {shown.length === 0 && <p className="text-sm text-muted">{facts?.complete ? "The agent said nothing." : "Nothing yet."}</p>}
      <ol aria-label="Transcript" className="flex flex-col gap-3">
        {shown.map((entry) => (
          <li key={entry.seq} className={entry.parentId ? "ml-6 border-l border-line pl-3" : ""}>
            <Entry entry={entry} result={entry.toolId ? results.get(entry.toolId) : undefined} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function Numbers({ facts }: { facts: Transcript }) {
  const parts: string[] = [];
  if (facts.model) parts.push(facts.model);
  if (facts.usage) {
    parts.push(`${facts.usage.inputTokens.toLocaleString()} tokens in`);
    if (facts.usage.cachedInputTokens) parts.push(`${facts.usage.cachedInputTokens.toLocaleString()} from the cache`);
    parts.push(`${facts.usage.outputTokens.toLocaleString()} out`);
  }
  if (facts.costUsd !== null && facts.costUsd !== undefined) parts.push(`$${facts.costUsd.toFixed(facts.costUsd < 0.01 ? 4 : 2)}`);
  if (facts.sessionId) parts.push(facts.sessionId === facts.resumedSessionId ? "session continued" : "new session");
  return parts.length > 0 ? <p className="text-sm text-muted">{parts.join(" · ")}</p> : null;
}

const text = "text-sm break-words whitespace-pre-wrap";
const block = "max-h-96 overflow-auto rounded-md bg-surface p-2 font-mono text-xs break-words whitespace-pre-wrap";

function Entry({ entry, result }: { entry: TranscriptEntry; result: TranscriptEntry | undefined }) {
  switch (entry.kind) {
    case "prompt":
      return <div className="rounded-md border border-line px-3 py-2"><p className="text-xs text-muted">Prompt</p><p className={text}>{entry.text}</p></div>;
    case "thinking":
      return <details><summary className="cursor-pointer text-xs text-muted">Thinking</summary><p className={`${text} text-muted`}>{entry.text}</p></details>;
    case "tool_call":
      return <Call entry={entry} result={result} />;
    case "tool_result":
      return <Call entry={entry} result={entry} />;
    case "notice":
      return <p className={`${text} text-warn-text`}>{entry.text}</p>;
    case "error":
      return <p className={`${text} text-danger-text`}>{entry.text}</p>;
    case "output":
      return <pre className={`${block} text-muted`}>{entry.text}</pre>;
    default:
      return <p className={text}>{entry.text}</p>;
  }
}

function Call({ entry, result }: { entry: TranscriptEntry; result: TranscriptEntry | undefined }) {
  const failed = result && (result.level === "warn" || (result.exitCode ?? 0) !== 0);
  const input = entry.input === null || entry.input === undefined ? "" : JSON.stringify(entry.input, undefined, 2);
  return (
    <details className="rounded-md border border-line">
      <summary className="cursor-pointer truncate px-3 py-1.5 text-sm">
        <span className="font-medium">{entry.toolName ?? "tool"}</span> <code className="text-xs">{entry.command}</code>
        {!result && <span className="ml-2 text-xs text-muted">running</span>}
        {failed && <span className="ml-2 text-xs text-danger-text">{result.exitCode ? `exit code ${result.exitCode}` : "failed"}</span>}
      </summary>
      <div className="flex flex-col gap-2 border-t border-line p-3">
        {entry.command ? <pre className={block}>{entry.command}</pre> : input && <pre className={block}>{input}</pre>}
        {result && <pre className={block}>{result.text || "no output"}</pre>}
      </div>
    </details>
  );
}
