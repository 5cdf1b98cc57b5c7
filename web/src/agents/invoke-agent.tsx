import { useState } from "react";
import { api } from "../api/client";
import type { Agent } from "../api/types";
import { useSession } from "../session/session";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";
import { useAction } from "../ui/use-action";

export function InvokeAgent({ agent, onClose, onStarted }: { agent: Agent; onClose: () => void; onStarted: (run: string) => void }) {
  const { environments } = useSession();
  const [prompt, setPrompt] = useState("");
  const [environment, setEnvironment] = useState("");
  const invoke = useAction(async () => {
    const run = await api.post("/api/agents/{agent}/heartbeat/invoke", { path: { agent: agent.id }, body: { prompt: prompt || null, environmentId: environment || null } });
    onStarted(run.id);
  });
  return (
    <Dialog open onClose={onClose} title={`Invoke ${agent.name}`} about="One turn of the agent, now.">
      <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void invoke.run(); }}>
        <Field label="Prompt" hint="What it is asked to do, for adapters that take one.">{(id, about) => <textarea id={id} aria-describedby={about} rows={4} className={input} value={prompt} onChange={(event) => setPrompt(event.target.value)} />}</Field>
        <Field label="Environment">{(id) => (
          <select id={id} className={input} value={environment} onChange={(event) => setEnvironment(event.target.value)}>
            <option value="">Its own default</option>
            {environments.map((each) => <option key={each.id} value={each.id}>{each.name}</option>)}
          </select>
        )}</Field>
        {invoke.error !== undefined && <ErrorBox error={invoke.error} />}
        <div className="flex justify-end gap-2"><Button onClick={onClose}>Cancel</Button><Button tone="primary" type="submit" busy={invoke.busy}>Invoke</Button></div>
      </form>
    </Dialog>
  );
}
