import { useEffect, useState } from "react";
import type { LogBuffer, Shown } from "./log-buffer";

// The lines of a log that have a text in them, and a cursor among them.
export function useLogSearch(buffer: LogBuffer, shown: Shown, version: number) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<number[]>([]);
  const [at, setAt] = useState(-1);
  const [busy, setBusy] = useState(false);

  useEffect(() => {
    const end = new AbortController();
    if (!text) {
      setFound([]);
      setAt(-1);
      return;
    }
    setBusy(true);
    const timer = window.setTimeout(() => {
      void buffer.search(shown, text, end.signal).then((lines) => {
        if (end.signal.aborted) return;
        setFound(lines);
        setBusy(false);
      });
    }, 200);
    return () => {
      end.abort();
      window.clearTimeout(timer);
    };
  }, [buffer, shown, text, version]);

  const go = (by: 1 | -1) => {
    if (found.length > 0) setAt((old) => (old + by + found.length) % found.length);
  };
  return { text, setText: (next: string) => { setText(next); setAt(-1); }, found, busy, go, line: at < 0 ? undefined : found[at] };
}
