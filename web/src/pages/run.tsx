import * as Tabs from "@radix-ui/react-tabs";
import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi, useNavigate } from "@tanstack/react-router";
import { api } from "../api/client";
import { runQuery } from "../api/queries";
import type { RunView } from "../api/types";
import { duration, shortId, words } from "../format";
import { LogView } from "../log/log-view";
import { useLog } from "../log/use-log";
import { Failure } from "../runs/failure";
import { runTitle } from "../runs/run-row";
import { Timeline } from "../runs/timeline";
import { TranscriptView } from "../runs/transcript";
import { useSession } from "../session/session";
import { StateBadge } from "../ui/badge";
import { Button, buttonClass } from "../ui/button";
import { ErrorBox } from "../ui/error-box";
import { Answer } from "../ui/loading";
import { Facts, Page, Panel } from "../ui/page";
import { Ago, Took } from "../ui/time";
import { useAction } from "../ui/use-action";

const route = getRouteApi("/runs/$run");
const waiting = ["queued", "starting", "running"];

export function RunPage() {
  const { run } = route.useParams();
  const query = useQuery(runQuery(run));
  return <Answer query={query}>{(view) => <Shown key={view.id} run={view} />}</Answer>;
}

function Shown({ run }: { run: RunView }) {
  const { may, agentName } = useSession();
  const navigate = useNavigate();
  const log = useLog(run.id);
  const isOver = !waiting.includes(run.status);
  const cancel = useAction(() => api.post("/api/heartbeat-runs/{run}/cancel", { path: { run: run.id } }));
  const retry = useAction(async () => {
    const next = await api.post("/api/heartbeat-runs/{run}/retry", { path: { run: run.id } });
    await navigate({ to: "/runs/$run", params: { run: next.id } });
  });
  const problem = cancel.error ?? retry.error;
  const output = <LogView log={log} name={`run-${shortId(run.id)}`} />;
  const mayOperate = may("company_operate");
  return (
    <Page title={runTitle(run, agentName)}
      about={<span className="flex flex-wrap items-center gap-2"><StateBadge state={run.status} /><Took from={run.startedAt} to={run.finishedAt} /><span>started <Ago at={run.createdAt} /></span><code>{run.id}</code></span>}
      actions={mayOperate && (
        <>
          {!isOver && run.command?.terminal && <Link to="/runs/$run/terminal" params={{ run: run.id }} className={buttonClass()}>Open its terminal</Link>}
          {!isOver && <Button tone="danger" busy={cancel.busy || Boolean(run.cancelRequestedAt)} onClick={() => void cancel.run()}>Cancel</Button>}
          {isOver && <Button busy={retry.busy} onClick={() => void retry.run()}>Run again</Button>}
        </>
      )}>
      {problem !== undefined && <ErrorBox error={problem} />}
      {run.error && <Failure run={run} />}
      <div className="grid gap-4 lg:grid-cols-2">
        <Panel title="Phases"><Timeline phases={run.phases} /></Panel>
        <Panel title="Where and why"><Place run={run} /></Panel>
      </div>
      {run.command?.promptExcerpt ? <Work run={run} output={output} /> : <Panel title="Output">{output}</Panel>}
    </Page>
  );
}

// The turn of an agent: for people, or as its program printed it.
function Work({ run, output }: { run: RunView; output: React.ReactNode }) {
  const tab = "border-b-2 border-transparent px-3 py-1.5 text-sm data-[state=active]:border-accent data-[state=active]:font-medium";
  return (
    <Tabs.Root defaultValue="transcript" className="flex flex-col gap-3">
      <Tabs.List aria-label="Views of the output" className="flex border-b border-line">
        <Tabs.Trigger className={tab} value="transcript">Transcript</Tabs.Trigger>
        <Tabs.Trigger className={tab} value="output">Raw output</Tabs.Trigger>
      </Tabs.List>
      <Tabs.Content value="transcript"><Panel><TranscriptView run={run.id} /></Panel></Tabs.Content>
      <Tabs.Content value="output"><Panel>{output}</Panel></Tabs.Content>
    </Tabs.Root>
  );
}

function Place({ run }: { run: RunView }) {
  const { may, agentName } = useSession();
  const rows: [string, React.ReactNode][] = [
    ["Environment", run.environment ? <Link className="link" to="/environments/$environment" params={{ environment: run.environment.id }}>{run.environment.name}</Link> : "deleted"],
    ["Driver", run.environment?.driver ?? "unknown"],
  ];
  if (run.environmentChoice) rows.push(["Why there", run.environmentChoice.explanation]);
  if (run.queue) rows.push(["Waits", `${run.queue.explanation} (place ${run.queue.position})`]);
  if (run.agentId) rows.push(["Agent", agentName(run.agentId)]);
  if (run.environmentLease) {
    const lease = run.environmentLease;
    rows.push(["Lease", (
      <span className="flex flex-wrap items-center gap-2">
        {may("company_operate") ? <Link className="link" to="/leases/$lease" params={{ lease: lease.id }}>{shortId(lease.id)}</Link> : shortId(lease.id)}
        <StateBadge state={lease.status} /><span className="text-muted">{words(lease.leasePolicy)}</span>
      </span>
    )]);
  }
  if (run.command?.cwd) rows.push(["Folder", <code key="cwd">{run.command.cwd}</code>]);
  if (run.command?.timeoutMs) rows.push(["Time limit", duration(run.command.timeoutMs)]);
  if (run.command?.envNames.length) rows.push(["Variables", run.command.envNames.join(", ")]);
  if (run.exitCode !== null && run.exitCode !== undefined) rows.push(["Exit status", String(run.exitCode)]);
  if (run.signal) rows.push(["Signal", run.signal]);
  if (run.name) rows.push(["Name", run.name]);
  if (run.retryOfRunId) rows.push(["Retry of", <Link key="again" className="link" to="/runs/$run" params={{ run: run.retryOfRunId }}>{shortId(run.retryOfRunId)}</Link>]);
  return <Facts rows={rows} />;
}
