import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { api } from "../api/client";
import { ApiError } from "../api/error";
import { agentsQuery, capabilitiesQuery } from "../api/queries";
import type { Agent } from "../api/types";
import { words } from "../format";
import { useSession } from "../session/session";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";
import { useAction } from "../ui/use-action";

// Forms are large, and come when one is opened.
const AdapterConfig = lazy(() => import("./adapter-config"));

// What is empty is not sent; a flag that is off is, since it may have been on.
const filled = (config: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined && value !== "" && value !== null));

export function AgentForm({ agent, onClose }: { agent: Agent | undefined; onClose: () => void }) {
  const { company, environments } = useSession();
  const queries = useQueryClient();
  const capabilities = useQuery(capabilitiesQuery(company.id));
  const [name, setName] = useState(agent?.name ?? "");
  const [adapter, setAdapter] = useState<Agent["adapterType"]>(agent?.adapterType ?? "process");
  const [environment, setEnvironment] = useState(agent?.defaultEnvironmentId ?? "");
  const [config, setConfig] = useState((agent?.adapterConfig ?? {}) as Record<string, unknown>);
  const adapters = capabilities.data?.adapters.map((each) => each.adapterType) ?? [adapter];
  const fits = capabilities.data?.adapters.find((each) => each.adapterType === adapter)?.drivers;
  const choices = environments.filter((each) => !fits || (fits as Record<string, string>)[each.driver] === "supported");

  const save = useAction(async () => {
    const body = { name, adapterType: adapter, adapterConfig: filled(config), defaultEnvironmentId: environment || null };
    if (agent) await api.patch("/api/agents/{agent}", { path: { agent: agent.id }, body });
    else await api.post("/api/companies/{company}/agents", { path: { company: company.id }, body });
    await queries.invalidateQueries(agentsQuery(company.id));
    await queries.invalidateQueries({ queryKey: ["session"] });
    onClose();
  });
  const issues = save.error instanceof ApiError ? save.error.issues : [];
  const problems = issues.filter((each) => each.path.startsWith("/adapterConfig/")).map((each) => ({ ...each, path: each.path.slice("/adapterConfig".length) }));
  return (
    <Dialog open onClose={onClose} title={agent ? `Edit ${agent.name}` : "New agent"} about="A program that works, and its default environment.">
      <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void save.run(); }}>
        <Field label="Name" required error={issues.find((each) => each.path === "/name")?.message}>{(id) => <input id={id} className={input} required value={name} onChange={(event) => setName(event.target.value)} />}</Field>
        <Field label="Adapter">{(id) => (
          <select id={id} className={input} value={adapter} onChange={(event) => setAdapter(event.target.value as Agent["adapterType"])}>
            {adapters.map((each) => <option key={each} value={each}>{words(each)}</option>)}
          </select>
        )}</Field>
        <Field label="Environment" hint="Only places where this adapter can work are offered.">{(id, about) => (
          <select id={id} aria-describedby={about} className={input} value={environment} onChange={(event) => setEnvironment(event.target.value)}>
            <option value="">Default of the company</option>
            {choices.map((each) => <option key={each.id} value={each.id}>{each.name}</option>)}
          </select>
        )}</Field>
        <Suspense fallback={<p role="status" className="text-sm text-muted">Loading…</p>}>
          <AdapterConfig adapter={adapter} value={config} problems={problems} onChange={setConfig} />
        </Suspense>
        {save.error !== undefined && <ErrorBox error={save.error} />}
        <div className="flex justify-end gap-2"><Button onClick={onClose}>Cancel</Button><Button tone="primary" type="submit" busy={save.busy}>Save</Button></div>
      </form>
    </Dialog>
  );
}
