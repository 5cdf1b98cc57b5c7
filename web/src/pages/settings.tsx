import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../api/client";
import { useSession } from "../session/session";
import { Quota } from "../settings/quota";
import { Tokens } from "../settings/tokens";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";
import { Facts, Page, Panel } from "../ui/page";
import { useAction } from "../ui/use-action";

export function SettingsPage() {
  const session = useSession();
  return (
    <Page title="Settings" about={session.company.name}>
      <Panel title="Default environment"><DefaultEnvironment /></Panel>
      <Panel title="This machine"><Allowances /></Panel>
      <Panel title="Quota"><Quota /></Panel>
      {session.may("company_admin") && <Panel title="Keys"><Tokens /></Panel>}
      <Panel title="Instance"><Instance /></Panel>
      {session.may("instance_admin") && (
        <Panel title="Walls">
          <p className="text-sm text-muted">What keeps attackers out on this machine, and whether it does: <Link to="/settings/walls" className="link">show the walls</Link>.</p>
        </Panel>
      )}
      <Panel title="You">
        <Facts rows={[
          ["Signed in as", session.kind === "local_operator" ? "operator of this machine" : `${session.role.replace("_", "")} key`],
          ["Mode", session.deploymentMode.replaceAll("_", " ")],
          ["Version", session.version],
        ]} />
      </Panel>
    </Page>
  );
}

function DefaultEnvironment() {
  const { company, environments, may } = useSession();
  const queries = useQueryClient();
  const save = useAction(async (id: string) => {
    await api.patch("/api/companies/{company}", { path: { company: company.id }, body: { defaultEnvironmentId: id || null } });
    await queries.invalidateQueries({ queryKey: ["session"] });
  });
  return (
    <div className="flex max-w-md flex-col gap-2">
      <Field label="Where runs go that name no environment" hint="An agent's own choice comes before it. It is saved at once.">{(id, about) => (
        <select id={id} aria-describedby={about} className={input} disabled={!may("company_admin") || save.busy} value={company.defaultEnvironmentId ?? ""} onChange={(event) => void save.run(event.target.value)}>
          <option value="">None: runs of operators go to Local</option>
          {environments.map((each) => <option key={each.id} value={each.id}>{each.name}</option>)}
        </select>
      )}</Field>
      {save.error !== undefined && <ErrorBox error={save.error} />}
    </div>
  );
}

const allowances = [
  ["local", "local", "Run commands without a sandbox, as the server's user", "Environments with the driver local."],
  ["host_network", "hostNetwork", "Give sandboxes the network of the machine", "network: host in the config of a sandbox."],
  ["private_egress", "privateEgress", "Let sandboxes reach addresses that are not public", "Loopback and private ranges in egress.allow."],
  ["private_ssh", "privateSsh", "Connect to SSH hosts whose addresses are not public", "The server connects to loopback and private addresses for SSH environments."],
  ["weak_sandbox", "weakSandbox", "Weaken sandboxes", "allow: nested_user_namespaces and minIsolation: minimal in the config of a sandbox."],
] as const;

// What the company may use of the server's machine without a wall.
function Allowances() {
  const { company, may } = useSession();
  const queries = useQueryClient();
  const save = useAction(async (field: (typeof allowances)[number][1], allowed: boolean) => {
    await api.patch("/api/companies/{company}/allowances", { path: { company: company.id }, body: { [field]: allowed } as Partial<Record<typeof field, boolean>> });
    await queries.invalidateQueries({ queryKey: ["session"] });
  });
  return (
    <div className="flex flex-col gap-2 text-sm">
      {allowances.map(([name, field, says, about]) => (
        <label key={name} className="flex items-start gap-2">
          <input type="checkbox" className="mt-1" checked={company.allowed.includes(name)} disabled={!may("instance_admin") || save.busy} onChange={(event) => void save.run(field, event.target.checked)} />
          <span>{says}<span className="block text-muted">{about}{company.keptAllowances.includes(name) ? " Kept from before the upgrade." : ""}</span></span>
        </label>
      ))}
      <p className="text-muted">An instance administrator decides this for each company.</p>
      {save.error !== undefined && <ErrorBox error={save.error} />}
    </div>
  );
}

function Instance() {
  const { may, settings } = useSession();
  const queries = useQueryClient();
  const save = useAction(async (strictSecrets: boolean) => {
    await api.patch("/api/instance/settings", { body: { strictSecrets } });
    await queries.invalidateQueries({ queryKey: ["session"] });
  });
  if (!settings) return null;
  return (
    <div className="flex flex-col gap-2 text-sm">
      <label className="flex items-start gap-2">
        <input type="checkbox" className="mt-1" checked={settings.strictSecrets} disabled={!may("instance_admin") || save.busy} onChange={(event) => void save.run(event.target.checked)} />
        <span>Refuse plain values for variables that look like secrets<span className="block text-muted">API_KEY, AUTH_TOKEN and their like must then name a secret.</span></span>
      </label>
      <p className="text-muted">Answers to repeated requests are kept for {settings.answerRetentionHours} h.</p>
      {save.error !== undefined && <ErrorBox error={save.error} />}
    </div>
  );
}
