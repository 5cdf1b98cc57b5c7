import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../api/client";
import type { Activity } from "../api/types";
import { words } from "../format";
import { useSession } from "../session/session";
import { Button } from "../ui/button";
import { Empty } from "../ui/empty";
import { ErrorBox } from "../ui/error-box";
import { input } from "../ui/field";
import { Page } from "../ui/page";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";

// As the API names the kinds of objects, and as people do.
const kinds = { company: "company", environment: "environment", environment_lease: "lease", agent: "agent", heartbeat_run: "run", secret: "secret", token: "token", template: "template", plugin: "plugin" };

const actionName = (action: string) =>
  words(action.replace(/^heartbeat\.invoked$/, "run.started").replace(/^heartbeat\./, "run.").replace(".", ": "));

export function ActivityPage() {
  const { company } = useSession();
  const [entityType, setEntityType] = useState("");
  const query = useInfiniteQuery({
    queryKey: ["activity", company.id, entityType],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      api.page("/api/companies/{company}/activity", { path: { company: company.id }, query: { entityType, after: pageParam, limit: 100 }, signal }),
    getNextPageParam: (page) => page.next,
  });
  const rows = query.data?.pages.flatMap((page) => page.rows) ?? [];
  return (
    <Page title="Activity" about="Who did what, newest first, as it happens.">
      <select aria-label="Kind of object" className={`${input} !w-auto self-start`} value={entityType} onChange={(event) => setEntityType(event.target.value)}>
        <option value="">Everything</option>
        {Object.entries(kinds).map(([each, name]) => <option key={each} value={each}>{name}</option>)}
      </select>
      {query.error && <ErrorBox error={query.error} />}
      {query.data && rows.length === 0 && <Empty title="Nothing yet">Everything that a caller or Berth itself does is written down in this list.</Empty>}
      {rows.length > 0 && (
        <Table label="Activity" head={["When", "Who", "What", "Object", "Details"]}>
          {rows.map((entry) => <Row key={entry.id} entry={entry} />)}
        </Table>
      )}
      {query.hasNextPage && <Button className="self-center" busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>Show older</Button>}
    </Page>
  );
}

function Row({ entry }: { entry: Activity }) {
  const { agentName } = useSession();
  const details = Object.entries(entry.details as Record<string, unknown>).map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
  return (
    <tr>
      <td><Ago at={entry.createdAt} /></td>
      <td className="whitespace-nowrap">{entry.agentId ? agentName(entry.agentId) : entry.actorId === "local-board" ? "operator of this machine" : entry.actorId}</td>
      <td className="whitespace-nowrap">{actionName(entry.action)}</td>
      <td className="max-w-56 truncate"><Target entry={entry} /></td>
      <td className="w-full max-w-40 truncate md:max-w-0 text-muted" title={details.join(", ")}>{details.join(", ")}</td>
    </tr>
  );
}

function Target({ entry }: { entry: Activity }) {
  const { environmentName } = useSession();
  const id = entry.entityId;
  if (entry.entityType === "environment" && id.length === 36) return <Link className="link" to="/environments/$environment" params={{ environment: id }}>{environmentName(id)}</Link>;
  if (entry.entityType === "environment_lease") return <Link className="link" to="/leases/$lease" params={{ lease: id }}>lease {id.slice(-8)}</Link>;
  if (entry.entityType === "heartbeat_run" || entry.entityType === "run") return <Link className="link" to="/runs/$run" params={{ run: id }}>run {id.slice(-8)}</Link>;
  if (entry.entityType === "secret") return <Link className="link" to="/secrets/$secret" params={{ secret: id }}>secret {id.slice(-8)}</Link>;
  return <span>{words(entry.entityType)} <code>{id.slice(-8)}</code></span>;
}
