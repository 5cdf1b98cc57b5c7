import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { api } from "../api/client";
import { egressQuery } from "../api/queries";
import type { Egress as Rules } from "../api/types";
import { bytes, duration } from "../format";
import { StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { Empty } from "../ui/empty";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";
import { Answer } from "../ui/loading";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";
import { useAction } from "../ui/use-action";
import { useEgressLog, type Decision } from "./use-egress-log";

const lines = (rules: readonly string[] | null | undefined) => (rules ?? []).join("\n");
const rulesOf = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);

// What a live sandbox may reach, and what was decided about each of its requests.
export function Egress({ lease }: { lease: string }) {
  const query = useQuery(egressQuery(lease));
  const { decisions, error } = useEgressLog(lease);
  return (
    <div className="flex flex-col gap-4">
      <Answer query={query}>{(view) => <Policy lease={lease} rules={view.policy as Rules} />}</Answer>
      {error !== undefined && <ErrorBox error={error} />}
      {decisions.length === 0 ? (
        <Empty title="No request yet">Each request that leaves the sandbox is listed here when it is over, with the rule that decided.</Empty>
      ) : <Requests decisions={decisions} />}
    </div>
  );
}

// What was decided about each request, newest first.
export function Requests({ decisions }: { decisions: readonly Decision[] }) {
  return (
    <Table label="Requests" head={["When", "Decision", "Where to", "Rule", "Up, down", "Took"]}>
      {decisions.map((each, at) => (
        <tr key={decisions.length - at}>
          <td><Ago at={each.at} /></td>
          <td><StateBadge state={each.decision} /></td>
          <td className="font-mono text-[13px] break-all">{each.method} {each.host}:{each.port}{each.path}</td>
          <td className="text-muted">{each.rule}{each.reason && <p>{each.reason}</p>}</td>
          <td className="whitespace-nowrap">{bytes(each.bytesUp)}, {bytes(each.bytesDown)}</td>
          <td className="whitespace-nowrap">{duration(each.durationMs)}</td>
        </tr>
      ))}
    </Table>
  );
}

function Policy({ lease, rules }: { lease: string; rules: Rules }) {
  const queries = useQueryClient();
  const [draft, setDraft] = useState<{ allow: string; deny: string; log: string }>();
  const shown = draft ?? { allow: lines(rules.allow), deny: lines(rules.deny), log: rules.log ?? "all" };
  const set = (change: Partial<typeof shown>) => setDraft({ ...shown, ...change });
  const save = useAction(async () => {
    await api.put("/api/environment-leases/{lease}/egress", { path: { lease }, body: { allow: rulesOf(shown.allow), deny: rulesOf(shown.deny), log: shown.log as NonNullable<Rules["log"]> } });
    setDraft(undefined);
    await queries.invalidateQueries({ queryKey: ["egress", lease] });
  });
  return (
    <form className="flex flex-col gap-3" onSubmit={(event: FormEvent) => { event.preventDefault(); void save.run(); }}>
      <div className="grid gap-3 sm:grid-cols-[1fr_1fr_10rem]">
        <Field label="May reach" hint="One rule per line: a name, *.name, an address or a range, with a port or without.">
          {(id, about) => <textarea id={id} aria-describedby={about} rows={3} className={`${input} font-mono`} value={shown.allow} onChange={(event) => set({ allow: event.target.value })} />}
        </Field>
        <Field label="May not reach" hint="Stronger than what is allowed.">
          {(id, about) => <textarea id={id} aria-describedby={about} rows={3} className={`${input} font-mono`} value={shown.deny} onChange={(event) => set({ deny: event.target.value })} />}
        </Field>
        <Field label="Write down">
          {(id) => (
            <select id={id} className={input} value={shown.log} onChange={(event) => set({ log: event.target.value })}>
              <option value="all">every request</option><option value="denied">what is denied</option><option value="none">nothing</option>
            </select>
          )}
        </Field>
      </div>
      {save.error !== undefined && <ErrorBox error={save.error} />}
      <div className="flex items-center gap-3">
        <Button type="submit" busy={save.busy} disabled={!draft}>Apply at once</Button>
        <p className="text-sm text-muted">For this sandbox alone, until it ends. An open connection to what is no longer allowed is cut.</p>
      </div>
    </form>
  );
}
