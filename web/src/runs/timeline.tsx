import type { PhaseTimes } from "../api/types";
import { duration, words } from "../format";
import { useNow } from "../ui/time";

const names: Record<string, string> = {
  queued: "Queued", acquire: "Acquire", realize: "Prepare", workspace_in: "Files in", files_in: "Files in", execute: "Execute",
  workspace_out: "Files back", files_back: "Files back", release: "Release",
};
const colours = ["#8a94a6", "#7c6bd6", "#3b82c4", "#2563eb", "#2a9d78", "#b7791f"];

const nameOf = (phase: string) => names[phase] ?? words(phase);

// The phases of a run as bars on one axis: what took how long, and after what.
export function Timeline({ phases }: { phases: readonly PhaseTimes[] }) {
  const now = useNow();
  if (phases.length === 0) return <p className="text-sm text-muted">Nothing has begun yet.</p>;
  const spans = phases.map((phase) => {
    const start = Date.parse(phase.startedAt);
    return { phase, start, end: phase.finishedAt ? Date.parse(phase.finishedAt) : Math.max(now, start) };
  });
  const from = Math.min(...spans.map((span) => span.start));
  const whole = Math.max(1, Math.max(...spans.map((span) => span.end)) - from);
  const row = 24;
  const left = 84;
  const width = 480;
  const right = 72;
  const scale = (width - left - right) / whole;
  const said = spans.map((span) => `${nameOf(span.phase.phase)} ${duration(span.end - span.start)}`).join(", ");
  return (
    <svg viewBox={`0 0 ${width} ${spans.length * row + 4}`} className="w-full max-w-3xl" role="img" aria-label={`Phases: ${said}`}>
      {spans.map((span, at) => {
        const x = left + (span.start - from) * scale;
        const bar = Math.max(2, (span.end - span.start) * scale);
        const y = at * row + 4;
        return (
          <g key={`${span.phase.phase}-${at}`}>
            <text x={left - 8} y={y + 13} textAnchor="end" fontSize="12" fill="var(--muted)">{nameOf(span.phase.phase)}</text>
            <rect x={left} y={y} width={width - left - right} height={16} rx="2" fill="var(--hover)" />
            <rect x={x} y={y} width={bar} height={16} rx="2" fill={colours[at % colours.length]}>
              <title>{`${nameOf(span.phase.phase)}: ${duration(span.end - span.start)}`}</title>
            </rect>
            <text x={width - right + 8} y={y + 13} fontSize="12" fill="var(--ink)">{duration(span.end - span.start)}{span.phase.finishedAt ? "" : "…"}</text>
          </g>
        );
      })}
    </svg>
  );
}
