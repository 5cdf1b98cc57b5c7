import * as Tabs from "@radix-ui/react-tabs";
import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { environmentLeasesQuery, environmentQuery } from "../api/queries";
import type { Environment } from "../api/types";
import { isManaged, isolationOf, placeOf } from "../environments/describe";
import { CustomImage } from "../environments/custom-image";
import { DeleteEnvironment } from "../environments/delete-environment";
import { Probe } from "../environments/probe";
import { useTest } from "../environments/use-test";
import { label } from "../format";
import { LeaseTable } from "../leases/lease-table";
import { RunRow } from "../runs/run-row";
import { StartRunDialog } from "../runs/start-run";
import { useRunList } from "../runs/use-run-list";
import { useSession } from "../session/session";
import { StateBadge } from "../ui/badge";
import { Button, buttonClass } from "../ui/button";
import { Empty } from "../ui/empty";
import { ErrorBox } from "../ui/error-box";
import { Answer } from "../ui/loading";
import { Facts, Page, Panel } from "../ui/page";
import { Ago } from "../ui/time";
import { VirtualList } from "../ui/virtual-list";
import { shownValue } from "../environments/shown-value";

const route = getRouteApi("/environments/$environment");
const tab = "border-b-2 border-transparent px-3 py-2 text-sm text-muted data-[state=active]:border-accent data-[state=active]:font-medium data-[state=active]:text-ink";

export function EnvironmentPage() {
  const { environment } = route.useParams();
  const query = useQuery(environmentQuery(environment));
  return <Answer query={query}>{(view) => <Shown key={view.id} environment={view} />}</Answer>;
}

function Shown({ environment }: { environment: Environment }) {
  const { may } = useSession();
  const [deleting, setDeleting] = useState(false);
  const [starting, setStarting] = useState(false);
  const test = useTest(environment.id);
  const mayOperate = may("company_operate");
  return (
    <Page title={environment.name}
      about={<span className="flex flex-wrap items-center gap-2"><StateBadge state={environment.status} /><span>{environment.driver}</span><span>{placeOf(environment)}</span><code>{environment.id}</code></span>}
      actions={mayOperate && (
        <>
          <Button tone="primary" onClick={() => setStarting(true)}>Start a run here</Button>
          <Button busy={test.busy} onClick={() => void test.run()}>Test</Button>
          <Link to="/environments/$environment/edit" params={{ environment: environment.id }} className={buttonClass()}>Edit</Link>
          <Button onClick={() => setDeleting(true)}>Delete</Button>
        </>
      )}>
      {test.error !== undefined && <ErrorBox error={test.error} />}
      {test.report && <Panel title="Test"><Probe report={test.report} /></Panel>}
      <Tabs.Root defaultValue="facts">
        <Tabs.List className="mb-4 flex border-b border-line" aria-label="About this environment">
          <Tabs.Trigger value="facts" className={tab}>Configuration</Tabs.Trigger>
          <Tabs.Trigger value="runs" className={tab}>Runs</Tabs.Trigger>
          {mayOperate && <Tabs.Trigger value="leases" className={tab}>Leases</Tabs.Trigger>}
          {mayOperate && environment.driver === "sandbox" && <Tabs.Trigger value="image" className={tab}>Custom image</Tabs.Trigger>}
        </Tabs.List>
        <Tabs.Content value="facts"><Configuration environment={environment} /></Tabs.Content>
        <Tabs.Content value="runs"><Runs environment={environment.id} /></Tabs.Content>
        <Tabs.Content value="leases"><Leases environment={environment.id} /></Tabs.Content>
        <Tabs.Content value="image"><CustomImage environment={environment} /></Tabs.Content>
      </Tabs.Root>
      <DeleteEnvironment environment={environment} open={deleting} onClose={() => setDeleting(false)} />
      <StartRunDialog open={starting} onClose={() => setStarting(false)} environment={environment.id} />
    </Page>
  );
}

function Configuration({ environment }: { environment: Environment }) {
  if (environment.configRedacted) return <Empty title="Not shown">Your role does not see how environments are configured.</Empty>;
  const config = Object.entries(environment.config as Record<string, unknown>);
  const variables = Object.entries(environment.envVars as Record<string, unknown>);
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      <Panel title="Configuration">
        <Facts rows={[
          ["Description", environment.description ?? ""],
          ["Isolation", isolationOf(environment)],
          ...config.map(([key, value]): [string, React.ReactNode] => [label(key), shownValue(key, value)]),
          ["Managed by", isManaged(environment) ? "Berth" : "you"],
          ["Changed", <Ago key="changed" at={environment.updatedAt} />],
        ]} />
      </Panel>
      <Panel title="Variables">
        {variables.length === 0 ? <p className="text-sm text-muted">None. A variable added here is given to every run in this environment.</p>
          : <Facts rows={variables.map(([key, value]) => [key, shownValue(key, value)])} />}
      </Panel>
    </div>
  );
}

function Runs({ environment }: { environment: string }) {
  const { company } = useSession();
  const runs = useRunList(company.id, { environment });
  if (runs.error !== undefined) return <ErrorBox error={runs.error} />;
  if (runs.state === "ready" && runs.rows.length === 0) return <Empty title="Nothing has run here">Start a run here to see whether it does what you expect.</Empty>;
  return <VirtualList key={runs.list} label="Runs" count={runs.rows.length} rowHeight={44} onEnd={runs.more} row={(at) => <RunRow run={runs.rows[at]!} />} />;
}

function Leases({ environment }: { environment: string }) {
  const { company } = useSession();
  const query = useQuery(environmentLeasesQuery(company.id, environment));
  return <Answer query={query}>{(leases) => <LeaseTable leases={leases} />}</Answer>;
}
