import { words } from "../format";

type Tone = "good" | "bad" | "busy" | "warn" | "still";

const tones: Record<Tone, string> = {
  good: "text-good-text bg-good/12",
  bad: "text-danger-text bg-danger/12",
  busy: "text-accent-text bg-accent/12",
  warn: "text-warn-text bg-warn/16",
  still: "text-muted bg-hover",
};

const states: Record<string, Tone> = {
  succeeded: "good", running: "busy", starting: "busy", queued: "still", failed: "bad", timed_out: "bad",
  interrupted: "bad", cancelled: "warn", active: "good", acquiring: "busy", releasing: "busy", released: "still",
  expired: "still", retained: "warn", pending_cleanup: "warn", archived: "still", disabled: "warn", paused: "warn",
  idle: "still", error: "bad", ok: "good", note: "still", warn: "warn", fail: "bad", ready: "good",
  installed: "busy", upgrade_pending: "warn", uninstalled: "still", crashed: "bad", stopped: "still",
  allowed: "good", denied: "bad", cut: "warn", capturing: "busy", deleting: "busy", deleted: "still", waiting_for_user: "busy",
  promoted: "good", stands: "good", weak: "warn", open: "bad",
};

export function Badge({ tone, children }: { tone: Tone; children: React.ReactNode }) {
  return <span className={`inline-block rounded px-1.5 py-0.5 text-xs font-medium whitespace-nowrap ${tones[tone]}`}>{children}</span>;
}

export function StateBadge({ state }: { state: string }) {
  return <Badge tone={states[state] ?? "still"}>{words(state)}</Badge>;
}
