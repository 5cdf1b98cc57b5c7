import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";
import { api } from "../api/client";
import { ApiError } from "../api/error";
import { secretsQuery } from "../api/queries";
import { count } from "../format";
import { useSession } from "../session/session";
import { StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Empty } from "../ui/empty";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";
import { Answer } from "../ui/loading";
import { Page } from "../ui/page";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";

export function SecretsPage() {
  const { company } = useSession();
  const query = useQuery(secretsQuery(company.id));
  const [making, setMaking] = useState(false);
  return (
    <Page title="Secrets" about="Sealed values that environments, agents and runs name. A value is never shown again."
      actions={<Button tone="primary" onClick={() => setMaking(true)}>New secret</Button>}>
      <Answer query={query}>
        {(secrets) =>
          secrets.length === 0 ? (
            <Empty title="No secret yet">Keep keys and passwords here, and let environments and agents name them instead of holding them.</Empty>
          ) : (
            <Table label="Secrets" head={["Name", "Key", "State", "Version", "Used in", "Last read", "Rotated"]}>
              {secrets.map((secret) => (
                <tr key={secret.id}>
                  <td><Link className="link font-medium" to="/secrets/$secret" params={{ secret: secret.id }}>{secret.name}</Link><p className="text-xs text-muted">{secret.description}</p></td>
                  <td><code>{secret.key}</code></td>
                  <td><StateBadge state={secret.status} /></td>
                  <td>{secret.latestVersion}</td>
                  <td>{count(secret.referenceCount, "place")}</td>
                  <td><Ago at={secret.lastResolvedAt} /></td>
                  <td><Ago at={secret.lastRotatedAt} /></td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
      <NewSecret open={making} onClose={() => setMaking(false)} />
    </Page>
  );
}

function NewSecret({ open, onClose }: { open: boolean; onClose: () => void }) {
  const { company } = useSession();
  const queries = useQueryClient();
  const [form, setForm] = useState({ name: "", value: "", description: "" });
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const issue = (path: string) => (error instanceof ApiError ? error.issues.find((each) => each.path === path)?.message : undefined);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await api.post("/api/companies/{company}/secrets", { path: { company: company.id }, body: { name: form.name, value: form.value, description: form.description || null } });
      await queries.invalidateQueries(secretsQuery(company.id));
      setForm({ name: "", value: "", description: "" });
      onClose();
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog open={open} onClose={onClose} title="New secret" about="The value is sealed on the server, and can be replaced but not read.">
      <form onSubmit={submit} className="flex flex-col gap-3">
        <Field label="Name" required error={issue("/name")}>{(id) => <input id={id} className={input} required autoComplete="off" value={form.name} onChange={(event) => setForm({ ...form, name: event.target.value })} />}</Field>
        <Field label="Value" required error={issue("/value")}>{(id) => <textarea id={id} className={`${input} font-mono`} rows={3} required autoComplete="off" spellCheck={false} value={form.value} onChange={(event) => setForm({ ...form, value: event.target.value })} />}</Field>
        <Field label="Description">{(id) => <input id={id} className={input} value={form.description} onChange={(event) => setForm({ ...form, description: event.target.value })} />}</Field>
        {error !== undefined && <ErrorBox error={error} />}
        <div className="flex justify-end gap-2"><Button onClick={onClose}>Cancel</Button><Button tone="primary" type="submit" busy={busy}>Keep it</Button></div>
      </form>
    </Dialog>
  );
}
