import { Link } from "@tanstack/react-router";
import type { LeaseView } from "../api/types";
import { shortId, words } from "../format";
import { useSession } from "../session/session";
import { Badge, StateBadge } from "../ui/badge";
import { Empty } from "../ui/empty";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";

export const finalStates = ["released", "expired", "failed"];

// Its processes stand still until somebody thaws it.
export const isFrozen = (lease: LeaseView) =>
  (lease.metadata as Record<string, unknown> | null | undefined)?.["frozen"] === true && !finalStates.includes(lease.status);

export function LeaseTable({ leases }: { leases: LeaseView[] }) {
  const { environmentName } = useSession();
  if (leases.length === 0) {
    return <Empty title="Nothing is held">A run takes a lease on its environment while it works; it would be listed here.</Empty>;
  }
  return (
    <Table label="Leases" head={["Lease", "State", "Environment", "Held by", "Since", "Until", "What happens next"]}>
      {leases.map((lease) => (
        <tr key={lease.id}>
          <td><Link className="link font-mono text-[13px]" to="/leases/$lease" params={{ lease: lease.id }}>{shortId(lease.id)}</Link></td>
          <td><StateBadge state={lease.status} />{lease.parkedAt && <> <Badge tone="bad">parked</Badge></>}{isFrozen(lease) && <> <Badge tone="warn">frozen</Badge></>}</td>
          <td>{environmentName(lease.environmentId)}{lease.provider && <p className="text-xs text-muted">{lease.provider}</p>}</td>
          <td>{lease.heartbeatRunId ? <Link className="link" to="/runs/$run" params={{ run: lease.heartbeatRunId }}>run {shortId(lease.heartbeatRunId)}</Link> : <span className="text-muted">{words(lease.leasePolicy)}</span>}</td>
          <td><Ago at={lease.acquiredAt} /></td>
          <td>{finalStates.includes(lease.status) ? <span className="text-muted">over <Ago at={lease.releasedAt} /></span> : lease.expiresAt ? <Ago at={lease.expiresAt} /> : <span className="text-muted">no limit</span>}</td>
          <td className="min-w-40 text-muted">{words(lease.nextStep)}</td>
        </tr>
      ))}
    </Table>
  );
}
