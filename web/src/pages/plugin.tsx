import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { api } from "../api/client";
import { pluginEgressQuery, pluginHealthQuery, pluginLogsQuery, pluginQuery } from "../api/queries";
import type { Plugin } from "../api/types";
import { count, words } from "../format";
import { Requests } from "../leases/egress";
import { isDecision } from "../leases/use-egress-log";
import { capabilitiesOf, descriptionOf, nameOf } from "../plugins/manifest";
import { useSession } from "../session/session";
import { Badge, StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { ErrorBox } from "../ui/error-box";
import { Answer } from "../ui/loading";
import { Facts, Folded, Page, Panel } from "../ui/page";
import { Ago } from "../ui/time";
import { useAction } from "../ui/use-action";

const route = getRouteApi("/plugins/$plugin");
const PluginConfig = lazy(() => import("../plugins/plugin-config"));

export function PluginPage() {
  const { plugin } = route.useParams();
  const query = useQuery(pluginQuery(plugin));
  return <Answer query={query}>{(view) => <Shown key={view.id} plugin={view} />}</Answer>;
}

function Shown({ plugin }: { plugin: Plugin }) {
  const { may } = useSession();
  return (
    <Page title={nameOf(plugin)} about={<span className="flex flex-wrap items-center gap-2"><StateBadge state={plugin.status} /><span>{plugin.version}</span><span>{descriptionOf(plugin)}</span></span>}
      actions={may("instance_admin") && <Actions plugin={plugin} />}>
      {plugin.lastError && <ErrorBox error={plugin.lastError} />}
      <Panel title="What it is">
        <Facts rows={[
          ["Key", <code key="k">{plugin.pluginKey}</code>],
          ["Package", <code key="p" className="break-all">{plugin.packageName}</code>],
          ["Kinds", plugin.categories.join(", ") || "none"],
          ["May do", capabilitiesOf(plugin).join(", ") || "nothing beyond its provider"],
          ["Installed", <Ago key="i" at={plugin.installedAt} />],
        ]} />
      </Panel>
      <Folded title="Health and worker">{() => <Health plugin={plugin.id} />}</Folded>
      <Folded title="Configuration">{() => <Suspense fallback={<p className="text-sm text-muted">Loading…</p>}><PluginConfig plugin={plugin} /></Suspense>}</Folded>
      {may("instance_admin") && <Folded title="Egress log">{() => <EgressLog plugin={plugin.id} />}</Folded>}
      <Folded title="Logs">{() => <Logs plugin={plugin.id} />}</Folded>
    </Page>
  );
}

function Actions({ plugin }: { plugin: Plugin }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [removing, setRemoving] = useState(false);
  const path = { plugin: plugin.id };
  const act = useAction(async (verb: "enable" | "disable" | "restart" | "upgrade") => {
    if (verb === "upgrade") await api.post("/api/plugins/{plugin}/upgrade", { path, body: {} });
    if (verb === "disable") await api.post("/api/plugins/{plugin}/disable", { path, body: {} });
    if (verb === "enable") await api.post("/api/plugins/{plugin}/enable", { path });
    if (verb === "restart") await api.post("/api/plugins/{plugin}/restart", { path });
    await queries.invalidateQueries();
  });
  const isOn = plugin.status === "ready";
  return (
    <>
      {isOn && <Button busy={act.busy} onClick={() => void act.run("restart")}>Restart</Button>}
      <Button busy={act.busy} onClick={() => void act.run(isOn ? "disable" : "enable")}>{isOn ? "Disable" : "Enable"}</Button>
      <Button busy={act.busy} onClick={() => void act.run("upgrade")}>Upgrade</Button>
      <Button onClick={() => setRemoving(true)}>Uninstall</Button>
      {act.error !== undefined && <ErrorBox error={act.error} />}
      <Confirm open={removing} onClose={() => setRemoving(false)} title={`Uninstall ${nameOf(plugin)}`} action="Uninstall it" name={plugin.pluginKey}
        about="Environments that use its provider no longer work. It is refused while the plugin holds sandboxes."
        act={async () => { await api.delete("/api/plugins/{plugin}", { path }); await queries.invalidateQueries(); await navigate({ to: "/plugins" }); }} />
    </>
  );
}

function Health({ plugin }: { plugin: string }) {
  const query = useQuery(pluginHealthQuery(plugin));
  return (
    <Answer query={query}>
      {(health) => (
        <div className="flex flex-col gap-3">
          <ul className="flex flex-col gap-1 text-sm">
            {health.checks.map((check) => <li key={check.name} className="flex gap-2"><Badge tone={check.passed ? "good" : "bad"}>{check.passed ? "ok" : "fails"}</Badge>{words(check.name)}<span className="text-muted">{check.message}</span></li>)}
          </ul>
          <Facts rows={[
            ["Worker", health.worker ? words(health.worker.status) : "none"],
            ["Process", health.worker?.pid ? String(health.worker.pid) : "none"],
            ["Running since", health.worker?.runningSince ? <Ago key="r" at={health.worker.runningSince} /> : "not running"],
            ["Crashes in a row", String(health.worker?.consecutiveCrashes ?? 0)],
            ["Holds", count(health.sandboxes, "sandbox", "sandboxes")],
          ]} />
        </div>
      )}
    </Answer>
  );
}

function EgressLog({ plugin }: { plugin: string }) {
  const query = useQuery(pluginEgressQuery(plugin));
  return (
    <Answer query={query}>
      {({ entries }) => {
        const decisions = (entries as object[]).filter(isDecision).reverse();
        if (decisions.length === 0) return <p className="text-sm text-muted">Its workers have asked for nothing since the server started.</p>;
        return <Requests decisions={decisions} />;
      }}
    </Answer>
  );
}

function Logs({ plugin }: { plugin: string }) {
  const query = useQuery(pluginLogsQuery(plugin));
  return (
    <Answer query={query}>
      {(lines) => lines.length === 0 ? <p className="text-sm text-muted">It has said nothing in the last seven days.</p> : (
        <ol className="log max-h-96 overflow-auto rounded-lg p-3 font-mono text-xs" tabIndex={0} aria-label="Logs of the plugin">
          {lines.map((line) => <li key={line.id} className="break-all whitespace-pre-wrap">{line.createdAt} {line.level} {line.message}</li>)}
        </ol>
      )}
    </Answer>
  );
}
