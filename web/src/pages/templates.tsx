import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../api/client";
import { environmentsQuery, templatesQuery } from "../api/queries";
import type { EnvironmentOverview, Template } from "../api/types";
import { count, words } from "../format";
import { useSession } from "../session/session";
import { Badge, StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { Empty } from "../ui/empty";
import { Answer } from "../ui/loading";
import { Page } from "../ui/page";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";

export function TemplatesPage() {
  const { company } = useSession();
  const query = useQuery(templatesQuery(company.id));
  const [deleted, setDeleted] = useState<Template>();
  return (
    <Page title="Templates" about="Sandboxes as they were at one moment, from which others start.">
      <Answer query={query}>
        {(all) => {
          const templates = all.filter((each) => each.status !== "deleted");
          if (templates.length === 0) return <Empty title="No template yet">Prepare a sandbox in a setup session of an environment, or keep a live one with <code>berth sandbox commit LEASE NAME</code>.</Empty>;
          return (
            <Table label="Templates" head={["Name", "Environment", "State", "Used by", "Captured", ""]}>
              {templates.map((each) => <Row key={each.id} template={each} above={templates.filter((other) => other.sourceTemplateId === each.id)} onDelete={setDeleted} />)}
            </Table>
          );
        }}
      </Answer>
      {deleted && <DeleteTemplate template={deleted} onClose={() => setDeleted(undefined)} />}
    </Page>
  );
}

function Row({ template, above, onDelete }: { template: Template; above: Template[]; onDelete: (template: Template) => void }) {
  const { environmentName, may } = useSession();
  const users = [template.role === "active" ? `every sandbox of ${environmentName(template.environmentId)}` : "", above.length ? count(above.length, "template") : ""].filter(Boolean);
  return (
    <tr>
      <td><span className="font-medium">{template.name}</span><p className="text-xs text-muted">{words(template.kind)} of {template.provider}</p></td>
      <td>{template.environmentId ? <Link className="link" to="/environments/$environment" params={{ environment: template.environmentId }}>{environmentName(template.environmentId)}</Link> : "none"}</td>
      <td>
        <span className="flex flex-wrap gap-1.5"><StateBadge state={template.status} />{template.role && <Badge tone={template.role === "active" ? "good" : "still"}>{template.role}</Badge>}</span>
        {template.failureReason && <p className="text-xs text-danger-text">{template.failureReason}</p>}
      </td>
      <td className="text-muted">{users.join(", ") || "nothing that is known here"}</td>
      <td><Ago at={template.capturedAt} /></td>
      <td className="text-right">{may("company_operate") && <Button onClick={() => onDelete(template)} aria-label={`Delete ${template.name}`}>Delete</Button>}</td>
    </tr>
  );
}

const startsFrom = (row: EnvironmentOverview, template: Template) => {
  const named = (row.environment.config as Record<string, unknown>)["template"];
  return named === template.id || named === template.name || (template.role === "active" && row.environment.id === template.environmentId);
};

function DeleteTemplate({ template, onClose }: { template: Template; onClose: () => void }) {
  const { company } = useSession();
  const queries = useQueryClient();
  const environments = useQuery(environmentsQuery(company.id));
  return (
    <Confirm open onClose={onClose} title={`Delete ${template.name}`} action="Delete it" name={template.name}
      about={<Answer query={environments}>{(rows) => {
        const users = rows.filter((row) => startsFrom(row, template)).map((row) => row.environment.name);
        return users.length > 0
          ? <p>It is refused while something stands on it. Sandboxes of {users.join(", ")} start from it: let them use the plain image, or another template, first.</p>
          : <p>This cannot be undone. It is refused while a sandbox or another template stands on it.</p>;
      }}</Answer>}
      act={async () => { await api.delete("/api/templates/{template}", { path: { template: template.id } }); await queries.invalidateQueries(); }} />
  );
}
