import { useQuery } from "@tanstack/react-query";
import { Link, getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { api } from "../api/client";
import { leaseQuery } from "../api/queries";
import type { LeaseView } from "../api/types";
import { shortId, words } from "../format";
import { Console } from "../leases/console";
import { Egress } from "../leases/egress";
import { Files } from "../leases/files";
import { Isolation, isolationIn } from "../leases/isolation";
import { Ports } from "../leases/ports";
import { finalStates, isFrozen } from "../leases/lease-table";
import { Usage } from "../leases/usage";
import { useSession } from "../session/session";
import { Badge, StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { Field, input } from "../ui/field";
import { Answer } from "../ui/loading";
import { Facts, Folded, Page, Panel } from "../ui/page";
import { Ago } from "../ui/time";

const route = getRouteApi("/leases/$lease");
const LeaseTerminal = lazy(() => import("../leases/lease-terminal"));

export function LeasePage() {
  const { lease } = route.useParams();
  const query = useQuery(leaseQuery(lease));
  return <Answer query={query}>{(view) => <Shown key={view.id} lease={view} />}</Answer>;
}

function Shown({ lease }: { lease: LeaseView }) {
  const { environmentName } = useSession();
  const [terminal, setTerminal] = useState(false);
  const isolation = isolationIn(lease.isolation);
  const isHeld = lease.status === "active" || lease.status === "retained";
  return (
    <Page title={`Lease ${shortId(lease.id)}`} about={<span className="flex flex-wrap items-center gap-2"><StateBadge state={lease.status} />{lease.parkedAt && <Badge tone="bad">parked</Badge>}{isFrozen(lease) && <Badge tone="warn">frozen</Badge>}<code>{lease.id}</code></span>}
      actions={!finalStates.includes(lease.status) && <Actions lease={lease} />}>
      <div className="grid gap-4 lg:grid-cols-2">
        <Panel title="What is held">
          <Facts rows={[
            ["Environment", lease.environmentId ? <Link key="e" className="link" to="/environments/$environment" params={{ environment: lease.environmentId }}>{environmentName(lease.environmentId)}</Link> : "deleted"],
            ["Driver", lease.driver],
            ["Provider", lease.provider ?? "none"],
            ["Provider ID", <code key="p">{lease.providerLeaseId ?? "none"}</code>],
            ["Held by", lease.heartbeatRunId ? <Link key="r" className="link" to="/runs/$run" params={{ run: lease.heartbeatRunId }}>run {shortId(lease.heartbeatRunId)}</Link> : "no run"],
            ["Policy", words(lease.leasePolicy)],
            ["Since", <Ago key="s" at={lease.acquiredAt} />],
            ["Until", finalStates.includes(lease.status) ? <Ago key="u" at={lease.releasedAt} /> : lease.expiresAt ? <Ago key="u" at={lease.expiresAt} /> : "no limit"],
            ["Isolation", isolation ? <Isolation key="i" reported={isolation} /> : "not reported"],
          ]} />
        </Panel>
        <Panel title="What happens next">
          <Facts rows={[
            ["Next step", words(lease.nextStep)],
            ["At", lease.nextAttemptAt ? <Ago key="n" at={lease.nextAttemptAt} /> : "no time set"],
            ["Attempts", String(lease.attempts)],
            ["Parked", lease.parkedAt ? <Ago key="k" at={lease.parkedAt} /> : "no"],
            ["Clean-up", lease.cleanupStatus ? words(lease.cleanupStatus) : "not begun"],
            ["Problem", lease.failureReason ?? "none"],
          ]} />
        </Panel>
      </div>
      {isHeld && (
        <>
          <Panel title="Terminal" actions={!terminal && <Button onClick={() => setTerminal(true)}>Open a terminal</Button>}>
            {terminal ? (
              <Suspense fallback={<p className="text-sm text-muted">Opening…</p>}><LeaseTerminal lease={lease.id} /></Suspense>
            ) : (
              <p className="text-sm text-muted">A shell in the place that this lease holds. Changes that you make there are real.</p>
            )}
          </Panel>
          <Panel title="One command"><Console lease={lease.id} /></Panel>
          {lease.driver === "sandbox" && <Panel title="Ports"><Ports lease={lease.id} /></Panel>}
          {lease.driver === "sandbox" && <Folded title="Network">{() => <Egress lease={lease.id} />}</Folded>}
          <Folded title="Files">{() => <Files lease={lease.id} />}</Folded>
          <Folded title="Usage">{() => <Usage lease={lease.id} />}</Folded>
        </>
      )}
    </Page>
  );
}

function Actions({ lease }: { lease: LeaseView }) {
  const [asking, setAsking] = useState<"release" | "destroy" | "force" | "adopt">();
  const [reason, setReason] = useState("");
  const [sandbox, setSandbox] = useState("");
  const waitsForName = Boolean(lease.parkedAt && lease.failureReason?.startsWith("acquire_unanswered"));
  const close = () => setAsking(undefined);
  const path = { lease: lease.id };
  return (
    <>
      <Button onClick={() => setAsking("release")}>Release</Button>
      <Button onClick={() => setAsking("destroy")}>Destroy</Button>
      {waitsForName && <Button onClick={() => setAsking("adopt")}>Name its sandbox</Button>}
      <Button onClick={() => setAsking("force")}>Force-resolve</Button>
      <Confirm open={asking === "release"} onClose={close} title="Release this lease" action="Release it"
        about="The place is given back. A reusable sandbox stays for the next run; another one is destroyed."
        act={() => api.post("/api/environment-leases/{lease}/release", { path })} />
      <Confirm open={asking === "destroy"} onClose={close} title="Destroy its sandbox" action="Destroy it"
        about="The place and every file in it are gone for ever. A run that works there is ended first."
        act={() => api.post("/api/environment-leases/{lease}/destroy", { path })} />
      <Confirm open={asking === "adopt"} onClose={close} title="Which sandbox it is" action="Destroy it" disabled={!sandbox.trim()}
        about={<>
          <p className="mb-2">The provider's answer was lost. If you have found the sandbox in its console, name it: it is destroyed, and the lease ends.</p>
          <Field label="Provider ID" required>{(id) => <input id={id} className={input} value={sandbox} onChange={(event) => setSandbox(event.target.value)} />}</Field>
        </>}
        act={() => api.post("/api/environment-leases/{lease}/adopt", { path, body: { providerLeaseId: sandbox.trim() } })} />
      <Confirm open={asking === "force"} onClose={close} title="Force-resolve this lease" action="End it" disabled={!reason.trim()}
        about={<>
          <p className="mb-2">Berth stops trying to clean up, whatever the provider still holds. You take care of the rest.</p>
          <Field label="Why" required>{(id) => <input id={id} className={input} value={reason} onChange={(event) => setReason(event.target.value)} />}</Field>
        </>}
        act={() => api.post("/api/environment-leases/{lease}/force-resolve", { path, body: { reason: reason.trim() } })} />
    </>
  );
}
