import { useEffect, useState } from "react";
import { api } from "../api/client";

// One line of the log, as the sandbox's proxy writes it.
export interface Decision {
  at: string;
  method: string;
  host: string;
  port: number;
  path: string;
  decision: string;
  rule: string;
  reason: string;
  bytesUp: number;
  bytesDown: number;
  durationMs: number;
}

interface Log {
  decisions: Decision[];
  error: unknown;
}

// How long the server may hold back an answer until something is decided, and the newest that are kept to be shown.
const waitSeconds = 20;
const shownMax = 1000;
const againMs = 1000;

export const isDecision = (entry: object): entry is Decision => "decision" in entry;

// The log of a sandbox from its beginning, newest first, as it grows.
export function useEgressLog(lease: string): Log {
  const [log, setLog] = useState<Log>({ decisions: [], error: undefined });
  useEffect(() => {
    const end = new AbortController();
    const read = async (offset: number) => {
      const query = { offset, wait: waitSeconds };
      const page = await api.get("/api/environment-leases/{lease}/egress", { path: { lease }, query, signal: end.signal });
      const fresh = (page.entries as object[]).filter(isDecision).reverse();
      setLog((old) => ({ decisions: [...fresh, ...old.decisions].slice(0, shownMax), error: undefined }));
      return page.entries.length > 0 ? page.nextOffset : offset;
    };
    const follow = async () => {
      for (let offset = 0; !end.signal.aborted;) {
        try {
          offset = await read(offset);
        } catch (error) {
          if (end.signal.aborted) return;
          setLog((old) => ({ ...old, error }));
          await new Promise((resume) => window.setTimeout(resume, againMs));
        }
      }
    };
    setLog({ decisions: [], error: undefined });
    void follow();
    return () => end.abort();
  }, [lease]);
  return log;
}
