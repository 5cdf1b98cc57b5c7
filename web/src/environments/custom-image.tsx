import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { api } from "../api/client";
import { capabilitiesQuery, customImageQuery } from "../api/queries";
import type { CustomImage as Image, Environment, SetupSession, Template } from "../api/types";
import { label, shortId } from "../format";
import { useSession } from "../session/session";
import { Badge, StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { Empty } from "../ui/empty";
import { ErrorBox } from "../ui/error-box";
import { Answer } from "../ui/loading";
import { Facts, Panel } from "../ui/page";
import { Ago } from "../ui/time";
import { useAction } from "../ui/use-action";
import { providerOf } from "./describe";

const LeaseTerminal = lazy(() => import("../leases/lease-terminal"));

// What sandboxes of an environment start from, and the sandbox that somebody prepares for the next ones.
export function CustomImage({ environment }: { environment: Environment }) {
  const { company } = useSession();
  const capabilities = useQuery({ ...capabilitiesQuery(company.id), meta: { still: true } });
  const image = useQuery(customImageQuery(environment.id));
  return (
    <Answer query={capabilities}>
      {(facts) =>
        facts.sandboxProviders[providerOf(environment)]?.supportsInteractiveSetup ? (
          <Answer query={image}>{(view) => <Shown environment={environment.id} image={view} />}</Answer>
        ) : (
          <Empty title="Not offered">The provider of this environment cannot prepare sandboxes by hand.</Empty>
        )
      }
    </Answer>
  );
}

function Shown({ environment, image }: { environment: string; image: Image }) {
  const queries = useQueryClient();
  const start = useAction(async () => {
    await api.post("/api/environments/{environment}/custom-image-setup-sessions", { path: { environment }, body: {} });
    await queries.invalidateQueries(customImageQuery(environment));
  });
  const session = image.activeSession;
  return (
    <div className="flex flex-col gap-4">
      <Active environment={environment} template={image.activeTemplate ?? undefined}
        drift={image.activeTemplateMatchesConfig === false ? (image.activeTemplateDrift?.driftedPaths ?? []) : undefined} />
      {session ? <Setup key={session.id} session={session} /> : (
        <Panel title="Prepare another one" actions={<Button busy={start.busy} onClick={() => void start.run()}>Start a setup session</Button>}>
          {start.error !== undefined && <ErrorBox error={start.error} />}
          <p className="text-sm text-muted">You get a sandbox and a terminal into it. Install what every run needs, then capture it: later sandboxes start from there.</p>
          {image.latestSession && <Latest session={image.latestSession} />}
        </Panel>
      )}
    </div>
  );
}

interface ActiveProps {
  environment: string;
  template: Template | undefined;
  // The settings by which the configuration no longer is the one of the template; undefined while it is.
  drift: readonly string[] | undefined;
}

function Active({ environment, template, drift }: ActiveProps) {
  const queries = useQueryClient();
  const [asking, setAsking] = useState<"revoke" | "relink">();
  const close = () => setAsking(undefined);
  const path = { environment };
  const again = () => queries.invalidateQueries(customImageQuery(environment));
  const rollback = useAction(async () => {
    await api.post("/api/environments/{environment}/custom-image-template/rollback", { path });
    await again();
  });
  return (
    <Panel title="What sandboxes start from" actions={template && (
      <span className="flex flex-wrap gap-2">
        {drift && <Button tone="primary" onClick={() => setAsking("relink")}>Link it again</Button>}
        <Button busy={rollback.busy} onClick={() => void rollback.run()}>Restore previous template</Button>
        <Button onClick={() => setAsking("revoke")}>Use the plain image</Button>
      </span>
    )}>
      {rollback.error !== undefined && <ErrorBox error={rollback.error} />}
      {!template ? <p className="text-sm">The image of the configuration, as it is.</p> : (
        <Facts rows={[
          ["Template", <Link key="t" className="link" to="/templates">{template.name}</Link>],
          ["Captured", <Ago key="c" at={template.capturedAt} />],
          ["Configuration", drift ? <Badge key="m" tone="warn">has changed since it was captured</Badge> : "the one it was captured with"],
          ...(drift ? [["Changed since", <Changed key="d" paths={drift} />] as [string, React.ReactNode]] : []),
        ]} />
      )}
      <Confirm open={asking === "relink"} onClose={close} title="Link the template again" action="Link it"
        about={<>
          <p className="mb-2">Later sandboxes start from this template, although it was captured with other settings:</p>
          <Changed paths={drift ?? []} />
        </>}
        act={async () => { await api.post("/api/environments/{environment}/custom-image-template/relink", { path, body: { confirmBootSourceDrift: true } }); await again(); }} />
      <Confirm open={asking === "revoke"} onClose={close} title="Use the plain image again" action="Use it"
        about="Later sandboxes start from the image of the configuration. The template stays in the list of templates."
        act={async () => { await api.delete("/api/environments/{environment}/custom-image-template", { path }); await again(); }} />
    </Panel>
  );
}

// Settings by their names; their values may be secrets, and are not told.
function Changed({ paths }: { paths: readonly string[] }) {
  if (paths.length === 0) return <span>what the template starts from</span>;
  return <span>{paths.map((path) => label(path.replace(/^\/config\//, ""))).join(", ")}</span>;
}

function Setup({ session }: { session: SetupSession }) {
  const queries = useQueryClient();
  const [cancelling, setCancelling] = useState(false);
  const path = { session: session.id };
  const again = () => queries.invalidateQueries(customImageQuery(session.environmentId));
  const finish = useAction(async () => {
    await api.post("/api/environment-custom-image-setup-sessions/{session}/finish", { path, body: {} });
    await queries.invalidateQueries();
  });
  const isOpen = session.status === "waiting_for_user";
  return (
    <Panel title="Setup session" actions={(
      <span className="flex flex-wrap items-center gap-2">
        <StateBadge state={session.status} />
        <Button tone="primary" busy={finish.busy} disabled={!isOpen} onClick={() => void finish.run()}>Capture it</Button>
        <Button onClick={() => setCancelling(true)}>Cancel</Button>
      </span>
    )}>
      <div className="flex flex-col gap-3">
        <Facts rows={[
          ["Sandbox", <Link key="l" className="link" to="/leases/$lease" params={{ lease: session.environmentLeaseId }}>lease {shortId(session.environmentLeaseId)}</Link>],
          ["Ends by itself", <Ago key="e" at={session.expiresAt} />],
        ]} />
        {session.failureReason && <p role="alert" className="text-sm text-danger-text">{session.failureReason}</p>}
        {finish.error !== undefined && <ErrorBox error={finish.error} />}
        {isOpen && <Suspense fallback={<p className="text-sm text-muted">Opening…</p>}><LeaseTerminal lease={session.environmentLeaseId} /></Suspense>}
      </div>
      <Confirm open={cancelling} onClose={() => setCancelling(false)} title="Cancel the setup session" action="Cancel it"
        about="Its sandbox and whatever you did in it are gone. Later sandboxes start from what they start from now."
        act={async () => { await api.post("/api/environment-custom-image-setup-sessions/{session}/cancel", { path, body: {} }); await again(); }} />
    </Panel>
  );
}

function Latest({ session }: { session: SetupSession }) {
  return (
    <p className="mt-2 flex flex-wrap items-center gap-2 text-sm text-muted">
      The last session: <StateBadge state={session.status} /><Ago at={session.finishedAt ?? session.updatedAt} />{session.failureReason}
    </p>
  );
}
