import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { AgentForm } from "../agents/agent-form";
import { InvokeAgent } from "../agents/invoke-agent";
import { api } from "../api/client";
import { agentsQuery } from "../api/queries";
import type { Agent } from "../api/types";
import { words } from "../format";
import { useSession } from "../session/session";
import { StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { Empty } from "../ui/empty";
import { Answer } from "../ui/loading";
import { Page } from "../ui/page";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";

export function AgentsPage() {
  const { company, may } = useSession();
  const query = useQuery(agentsQuery(company.id));
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [edited, setEdited] = useState<Agent | "new">();
  const [invoked, setInvoked] = useState<Agent>();
  const [deleted, setDeleted] = useState<Agent>();
  const mayOperate = may("company_operate");
  return (
    <Page title="Agents" about="Programs that work: each has an adapter, which starts it, and a default environment."
      actions={mayOperate && <Button tone="primary" onClick={() => setEdited("new")}>New agent</Button>}>
      <Answer query={query}>
        {(agents) =>
          agents.length === 0 ? (
            <Empty title="No agent yet">An agent runs a command or a coding assistant in an environment of your choice. Runs of plain commands need none.</Empty>
          ) : (
            <Table label="Agents" head={["Name", "Adapter", "State", "Environment", "Last turn", ""]}>
              {agents.map((agent) => <Row key={agent.id} agent={agent} mayOperate={mayOperate} onEdit={setEdited} onInvoke={setInvoked} onDelete={setDeleted} />)}
            </Table>
          )
        }
      </Answer>
      {edited && <AgentForm agent={edited === "new" ? undefined : edited} onClose={() => setEdited(undefined)} />}
      {invoked && <InvokeAgent agent={invoked} onClose={() => setInvoked(undefined)} onStarted={(run) => void navigate({ to: "/runs/$run", params: { run } })} />}
      {deleted && (
        <Confirm open onClose={() => setDeleted(undefined)} title={`Delete ${deleted.name}`} action="Delete it" name={deleted.name}
          about="Its keys are revoked. Its runs stay."
          act={async () => { await api.delete("/api/agents/{agent}", { path: { agent: deleted.id } }); await queries.invalidateQueries(); }} />
      )}
    </Page>
  );
}

interface RowProps {
  agent: Agent;
  mayOperate: boolean;
  onEdit: (agent: Agent) => void;
  onInvoke: (agent: Agent) => void;
  onDelete: (agent: Agent) => void;
}

function Row({ agent, mayOperate, onEdit, onInvoke, onDelete }: RowProps) {
  const { environmentName } = useSession();
  return (
    <tr>
      <td><Link className="link font-medium" to="/runs" search={{ agent: agent.id }}>{agent.name}</Link><p className="text-xs text-muted">{agent.title ?? agent.role}</p></td>
      <td>{words(agent.adapterType)}</td>
      <td><StateBadge state={agent.status} /></td>
      <td>{agent.defaultEnvironmentId ? environmentName(agent.defaultEnvironmentId) : <span className="text-muted">default of the company</span>}</td>
      <td><Ago at={agent.lastHeartbeatAt} /></td>
      <td className="text-right whitespace-nowrap">
        {mayOperate && (
          <span className="inline-flex gap-2">
            <Button onClick={() => onInvoke(agent)} aria-label={`Invoke ${agent.name}`}>Invoke</Button>
            <Button onClick={() => onEdit(agent)} aria-label={`Edit ${agent.name}`}>Edit</Button>
            <Button onClick={() => onDelete(agent)} aria-label={`Delete ${agent.name}`}>Delete</Button>
          </span>
        )}
      </td>
    </tr>
  );
}
