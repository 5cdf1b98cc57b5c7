import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";
import { api } from "../api/client";
import { secretAccessQuery, secretUsageQuery } from "../api/queries";
import { words } from "../format";
import { Badge, StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";
import { Answer } from "../ui/loading";
import { Folded, Page, Panel } from "../ui/page";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";
import { useAction } from "../ui/use-action";

const route = getRouteApi("/secrets/$secret");

export function SecretPage() {
  const { secret } = route.useParams();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const query = useQuery({ queryKey: ["secret", secret], queryFn: ({ signal }) => api.get("/api/secrets/{secret}", { path: { secret }, signal }) });
  const renew = () => queries.invalidateQueries();
  const toggle = useAction(async () => {
    await api.patch("/api/secrets/{secret}", { path: { secret }, body: { status: query.data?.status === "active" ? "disabled" : "active" } });
    await renew();
  });
  return (
    <Answer query={query}>
      {(record) => (
        <Page title={record.name} about={<span className="flex flex-wrap items-center gap-2"><StateBadge state={record.status} /><code>{record.key}</code><span>version {record.latestVersion}</span><span>{record.description}</span></span>}
          actions={<><Button busy={toggle.busy} onClick={() => void toggle.run()}>{record.status === "active" ? "Disable" : "Enable"}</Button><Button onClick={() => setDeleting(true)}>Delete</Button></>}>
          {toggle.error !== undefined && <ErrorBox error={toggle.error} />}
          <Rotate secret={secret} version={record.latestVersion} onDone={renew} />
          <Folded title="Used in">{() => <Usage secret={secret} />}</Folded>
          <Folded title="Access log">{() => <Access secret={secret} />}</Folded>
          <Confirm open={deleting} onClose={() => setDeleting(false)} title={`Delete ${record.name}`} action="Delete it" name={record.name}
            about="Every version, every binding and the list of who read it are gone. What names it fails until it names another."
            act={async () => { await api.delete("/api/secrets/{secret}", { path: { secret } }); await navigate({ to: "/secrets" }); }} />
        </Page>
      )}
    </Answer>
  );
}

function Rotate({ secret, version, onDone }: { secret: string; version: number; onDone: () => Promise<unknown> }) {
  const [value, setValue] = useState("");
  const rotate = useAction(async () => {
    await api.post("/api/secrets/{secret}/rotate", { path: { secret }, body: { value, expectedLatestVersion: version } });
    setValue("");
    await onDone();
  });
  return (
    <Panel title="New value">
      <form className="flex flex-wrap items-end gap-3" onSubmit={(event: FormEvent) => { event.preventDefault(); void rotate.run(); }}>
        <div className="min-w-60 flex-1"><Field label="Value">{(id) => <input id={id} aria-describedby="rotate-about" type="password" autoComplete="off" className={input} required value={value} onChange={(event) => setValue(event.target.value)} />}</Field></div>
        <Button type="submit" busy={rotate.busy}>Rotate</Button>
      </form>
      <p id="rotate-about" className="mt-1 text-xs text-muted">It becomes version {version + 1}. Runs that start from now on get it.</p>
      {rotate.error !== undefined && <div className="mt-3"><ErrorBox error={rotate.error} /></div>}
    </Panel>
  );
}

function Usage({ secret }: { secret: string }) {
  const query = useQuery(secretUsageQuery(secret));
  return (
    <Answer query={query}>
      {({ bindings }) => bindings.length === 0 ? <p className="text-sm text-muted">Nothing names it.</p> : (
        <Table label="Used in" head={["What", "Where in it", "Version"]}>
          {bindings.map((each) => <tr key={each.id}><td>{words(each.targetType)}: {each.target.label}</td><td><code>{each.configPath}</code></td><td>{each.versionSelector}</td></tr>)}
        </Table>
      )}
    </Answer>
  );
}

function Access({ secret }: { secret: string }) {
  const query = useQuery(secretAccessQuery(secret));
  return (
    <Answer query={query}>
      {(events) => events.length === 0 ? <p className="text-sm text-muted">It has not been read yet.</p> : (
        <Table label="Access" head={["When", "Outcome", "By", "For", "Version"]}>
          {events.map((each) => (
            <tr key={each.id}><td><Ago at={each.createdAt} /></td><td><Badge tone={each.outcome === "success" ? "good" : "bad"}>{words(each.outcome)}</Badge></td><td>{each.actorId}</td><td>{words(each.consumerType)} <code>{each.consumerId.slice(-8)}</code></td><td>{each.secretVersion ?? ""}</td></tr>
          ))}
        </Table>
      )}
    </Answer>
  );
}
