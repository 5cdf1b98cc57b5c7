import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { tokensQuery } from "../api/queries";
import type { Token } from "../api/types";
import { useSession } from "../session/session";
import { Badge } from "../ui/badge";
import { Button } from "../ui/button";
import { Confirm } from "../ui/confirm";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";
import { Answer } from "../ui/loading";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";
import { useAction } from "../ui/use-action";

const roles = ["admin", "operator", "viewer"] as const;

export function Tokens() {
  const { company } = useSession();
  const queries = useQueryClient();
  const query = useQuery(tokensQuery(company.id));
  const [revoked, setRevoked] = useState<Token>();
  return (
    <div className="flex flex-col gap-4">
      <NewToken />
      <Answer query={query}>
        {(tokens) => tokens.length === 0 ? <p className="text-sm text-muted">No key yet. A key lets a person or a program in from elsewhere.</p> : (
          <Table label="Keys" head={["Name", "Begins with", "Role", "Last used", "Until", ""]}>
            {tokens.map((token) => (
              <tr key={token.id}>
                <td>{token.name}</td>
                <td><code>{token.hint}…</code></td>
                <td>{token.kind === "agent_key" ? "agent" : token.role}</td>
                <td><Ago at={token.lastUsedAt} /></td>
                <td>{token.revokedAt ? <Badge tone="bad">revoked</Badge> : token.expiresAt ? <Ago at={token.expiresAt} /> : "no limit"}</td>
                <td className="text-right">{!token.revokedAt && <Button onClick={() => setRevoked(token)} aria-label={`Revoke ${token.name}`}>Revoke</Button>}</td>
              </tr>
            ))}
          </Table>
        )}
      </Answer>
      {revoked && (
        <Confirm open onClose={() => setRevoked(undefined)} title={`Revoke ${revoked.name}`} action="Revoke it"
          about="The key stops working at once, also for open sessions. This cannot be undone."
          act={async () => { await api.delete("/api/tokens/{token}", { path: { token: revoked.id } }); await queries.invalidateQueries(tokensQuery(company.id)); }} />
      )}
    </div>
  );
}

function NewToken() {
  const { company } = useSession();
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [role, setRole] = useState<(typeof roles)[number]>("operator");
  const [days, setDays] = useState("90");
  const [key, setKey] = useState("");
  const create = useAction(async () => {
    const expiresAt = days ? new Date(Date.now() + Number(days) * 86_400_000).toISOString() : null;
    const made = await api.post("/api/companies/{company}/tokens", { path: { company: company.id }, body: { name, role, expiresAt } });
    setKey(made.key);
    setName("");
    await queries.invalidateQueries(tokensQuery(company.id));
  });
  return (
    <div className="flex flex-col gap-3">
      <form className="flex flex-wrap items-end gap-3" onSubmit={(event) => { event.preventDefault(); void create.run(); }}>
        <div className="w-48"><Field label="Name of the key" required>{(id) => <input id={id} className={input} required value={name} onChange={(event) => setName(event.target.value)} />}</Field></div>
        <Field label="Role">{(id) => <select id={id} className={input} value={role} onChange={(event) => setRole(event.target.value as typeof role)}>{roles.map((each) => <option key={each}>{each}</option>)}</select>}</Field>
        <div className="w-28"><Field label="Days">{(id) => <input id={id} type="number" min={1} className={input} placeholder="no limit" value={days} onChange={(event) => setDays(event.target.value)} />}</Field></div>
        <Button type="submit" busy={create.busy}>Make a key</Button>
      </form>
      {create.error !== undefined && <ErrorBox error={create.error} />}
      {key && (
        <div className="rounded-md border border-good/40 bg-good/8 p-3 text-sm" role="status">
          <p className="font-medium">This is the key. It is shown this once.</p>
          <code className="mt-1 block break-all select-all" data-testid="new-key">{key}</code>
        </div>
      )}
    </div>
  );
}
