import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { api } from "../api/client";
import { blastRadiusQuery } from "../api/queries";
import type { BlastRadius, Environment } from "../api/types";
import { count } from "../format";
import { Confirm } from "../ui/confirm";
import { Answer } from "../ui/loading";

const reasons: Record<BlastRadius["deleteBlockedReasons"][number], string> = {
  managed_local: "It is the Local environment that Berth keeps for every company.",
  instance_default: "It is the default environment; choose another one in the settings first.",
  reusable_sandbox_lease: "It has a reusable sandbox; destroy the lease that holds it, or wait until it expires.",
  pending_sandbox_cleanup: "A sandbox of it is still to be cleaned up; see its leases.",
};

export function DeleteEnvironment({ environment, open, onClose }: { environment: Environment; open: boolean; onClose: () => void }) {
  const navigate = useNavigate();
  const query = useQuery({ ...blastRadiusQuery(environment.id), enabled: open });
  const remove = async () => {
    await api.delete("/api/environments/{environment}", { path: { environment: environment.id } });
    await navigate({ to: "/environments" });
  };
  return (
    <Confirm open={open} onClose={onClose} title={`Delete ${environment.name}`} action="Delete it" name={environment.name}
      disabled={query.data ? !query.data.canDelete : true} act={remove}
      about={<Answer query={query}>{(radius) => <Radius radius={radius} />}</Answer>} />
  );
}

function Radius({ radius }: { radius: BlastRadius }) {
  const uses = radius.staticReferences;
  const broken = [
    uses.agentDefaultCount ? `${count(uses.agentDefaultCount, "agent")} lose their default environment` : "",
    uses.secretBindingCount ? `${count(uses.secretBindingCount, "binding")} of secrets go` : "",
    uses.executionWorkspaceSelectionCount ? `${count(uses.executionWorkspaceSelectionCount, "workspace")} lose their choice` : "",
    radius.activeRuntimeUse.activeLeaseCount ? `${count(radius.activeRuntimeUse.activeLeaseCount, "live lease")} end without it` : "",
  ].filter(Boolean);
  if (!radius.canDelete) {
    return (
      <div>
        <p>It cannot be deleted now:</p>
        <ul className="list-disc pl-5">{radius.deleteBlockedReasons.map((each) => <li key={each}>{reasons[each]}</li>)}</ul>
      </div>
    );
  }
  return (
    <div>
      <p>This cannot be undone. Runs and their output stay.</p>
      {broken.length > 0 ? <ul className="list-disc pl-5">{broken.map((each) => <li key={each}>{each}</li>)}</ul> : <p>Nothing else uses it.</p>}
    </div>
  );
}
