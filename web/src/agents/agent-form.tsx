import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
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

const adapters = ["process", "claude_local", "codex_local"] as const;

// The config of an adapter is JSON: adapters differ, and the server names each field that it does not take.
export function AgentForm({ agent, onClose }: { agent: Agent | undefined; onClose: () => void }) {
  const { company, environments } = useSession();
  const queries = useQueryClient();
  const capabilities = useQuery(capabilitiesQuery(company.id));
  const [name, setName] = useState(agent?.name ?? "");
  const [adapter, setAdapter] = useState<Agent["adapterType"]>(agent?.adapterType ?? "process");
  const [environment, setEnvironment] = useState(agent?.defaultEnvironmentId ?? "");
  const [config, setConfig] = useState(JSON.stringify(agent?.adapterConfig ?? { command: "echo", args: ["hello"] }, null, 2));
  const fits = capabilities.data?.adapters.find((each) => each.adapterType === adapter)?.drivers;
  const choices = environments.filter((each) => !fits || (fits as Record<string, string>)[each.driver] === "supported");

  let parsed: Record<string, unknown> | undefined;
  try {
    parsed = JSON.parse(config) as Record<string, unknown>;
  } catch {
    parsed = undefined;
  }
  const save = useAction(async () => {
    const body = { name, adapterType: adapter, adapterConfig: parsed ?? {}, defaultEnvironmentId: environment || null };
    if (agent) await api.patch("/api/agents/{agent}", { path: { agent: agent.id }, body });
    else await api.post("/api/companies/{company}/agents", { path: { company: company.id }, body });
    await queries.invalidateQueries(agentsQuery(company.id));
    await queries.invalidateQueries({ queryKey: ["session"] });
    onClose();
  });
  const issue = (start: string) => (save.error instanceof ApiError ? save.error.issues.find((each) => each.path.startsWith(start)) : undefined);
  const wrong = issue("/adapterConfig");
  return (
    <Dialog open onClose={onClose} title={agent ? `Edit ${agent.name}` : "New agent"} about="Who works, and where by default.">
      <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void save.run(); }}>
        <Field label="Name" required error={issue("/name")?.message}>{(id) => <input id={id} className={input} required value={name} onChange={(event) => setName(event.target.value)} />}</Field>
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
        <Field label="Configuration" error={parsed === undefined ? "This is no JSON object." : wrong ? `${wrong.path}: ${wrong.message}` : undefined} hint="JSON, such as command, args, cwd, env, timeoutSec.">{(id, about) => (
          <textarea id={id} aria-describedby={about} aria-invalid={parsed === undefined} rows={7} spellCheck={false} className={`${input} font-mono`} value={config} onChange={(event) => setConfig(event.target.value)} />
        )}</Field>
        {save.error !== undefined && <ErrorBox error={save.error} />}
        <div className="flex justify-end gap-2"><Button onClick={onClose}>Cancel</Button><Button tone="primary" type="submit" busy={save.busy} disabled={parsed === undefined}>Save</Button></div>
      </form>
    </Dialog>
  );
}
