import { Link } from "@tanstack/react-router";
import type { Run, RunSummary } from "../api/types";
import { commandText, shortId } from "../format";
import { useSession } from "../session/session";
import { StateBadge } from "../ui/badge";
import { Ago, Took } from "../ui/time";

export function runTitle(run: Run, agentName: (id: string) => string): string {
  const asked = run.command?.promptExcerpt;
  if (run.agentId && asked) return `${agentName(run.agentId)}: ${asked}`;
  if (run.command) return commandText(run.command.argv);
  return run.agentId ? `Turn of ${agentName(run.agentId)}` : `Run ${shortId(run.id)}`;
}

export function summaryTitle(run: RunSummary, agentName: (id: string) => string): string {
  if (run.agentId) return run.title ? `${agentName(run.agentId)}: ${run.title}` : `Turn of ${agentName(run.agentId)}`;
  return run.title || `Run ${shortId(run.id)}`;
}

export function RunRow({ run }: { run: RunSummary }) {
  const { environmentName, agentName } = useSession();
  return (
    <div className="grid h-full grid-cols-[6.5rem_minmax(0,1fr)_auto] items-center gap-x-3 px-3 text-sm md:grid-cols-[6.5rem_minmax(0,1fr)_9rem_5.5rem_6.5rem]">
      <span><StateBadge state={run.status} /></span>
      <Link to="/runs/$run" params={{ run: run.id }} className="link truncate font-mono text-[13px]">{summaryTitle(run, agentName)}</Link>
      <span className="truncate text-muted max-md:hidden">{environmentName(run.environmentId)}</span>
      <span className="text-right max-md:hidden"><Took from={run.startedAt} to={run.finishedAt} /></span>
      <span className="text-right text-muted"><Ago at={run.createdAt} /></span>
    </div>
  );
}
