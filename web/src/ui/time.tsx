import { useEffect, useState } from "react";
import { ago, duration, moment } from "../format";

let now = Date.now();
const watchers = new Set<() => void>();
window.setInterval(() => {
  now = Date.now();
  for (const watcher of watchers) watcher();
}, 1000);

// The moment, renewed once a second for all who show one.
export function useNow(): number {
  const [seen, setSeen] = useState(now);
  useEffect(() => {
    const watcher = () => setSeen(now);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
  return seen;
}

export function Ago({ at }: { at: string | null | undefined }) {
  const current = useNow();
  if (!at) return <span className="text-muted">never</span>;
  return <time dateTime={at} title={moment(at)} className="whitespace-nowrap">{ago(at, current)}</time>;
}

// How long something took, or takes so far.
export function Took({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  const current = useNow();
  if (!from) return <span className="text-muted">not started</span>;
  const ms = (to ? Date.parse(to) : Math.max(current, Date.parse(from))) - Date.parse(from);
  return <span className="whitespace-nowrap">{duration(ms)}</span>;
}
