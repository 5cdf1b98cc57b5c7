import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useMemo, useState, type FormEvent } from "react";
import { api } from "../api/client";
import { ApiError } from "../api/error";
import { capabilitiesQuery, environmentQuery } from "../api/queries";
import type { Capabilities, Driver, Environment, ProbeReport } from "../api/types";
import { isManaged } from "../environments/describe";
import { bodyOf, draftOf, fieldsOf, newDraft, runnable, schemaOf, type Draft } from "../environments/draft";
import { Probe } from "../environments/probe";
import { Variables, problemOf, storedVariables } from "../environments/variables";
import { SchemaForm } from "../forms/schema-form";
import { problemsOf, type Problem } from "../forms/validator";
import { judgeable, shownAt } from "../forms/schema";
import { useSession } from "../session/session";
import { Button, buttonClass } from "../ui/button";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";
import { Answer } from "../ui/loading";
import { Page, Panel } from "../ui/page";
import { useAction } from "../ui/use-action";

export function EnvironmentEditorPage() {
  const { environment } = useParams({ strict: false });
  const { company } = useSession();
  const capabilities = useQuery({ ...capabilitiesQuery(company.id), meta: { still: true } });
  const stored = useQuery({ ...environmentQuery(environment ?? ""), enabled: environment !== undefined, meta: { still: true } });
  if (environment === undefined) return <Answer query={capabilities}>{(facts) => <Editor capabilities={facts} stored={undefined} />}</Answer>;
  return <Answer query={capabilities}>{(facts) => <Answer query={stored}>{(view) => <Editor key={view.id} capabilities={facts} stored={view} />}</Answer>}</Answer>;
}

const driverNames: Record<Driver, string> = { local: "This machine", ssh: "A host over ssh", sandbox: "Sandbox", plugin: "Plugin" };

function Editor({ capabilities, stored }: { capabilities: Capabilities; stored: Environment | undefined }) {
  const { company } = useSession();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [draft, setDraft] = useState<Draft>(() => (stored ? draftOf(stored) : newDraft(capabilities)));
  const [problems, setProblems] = useState<Problem[]>([]);
  const [report, setReport] = useState<ProbeReport>();
  const schema = useMemo(() => schemaOf(draft, capabilities), [draft.driver, draft.provider, capabilities]); // eslint-disable-line react-hooks/exhaustive-deps
  const set = (change: Partial<Draft>) => setDraft((old) => ({ ...old, ...change }));
  const isFixed = stored !== undefined && isManaged(stored);

  // Problems of the form at their fields; nothing is sent while there are any.
  const check = (): boolean => {
    const found = isFixed ? [] : problemsOf(judgeable(schema), fieldsOf(draft, schema));
    setProblems(shownAt(schema, found));
    return found.length === 0 && draft.variables.every((each) => !problemOf(each, draft.variables));
  };
  const placed = async (work: () => Promise<void>) => {
    if (!check()) throw new Error("Some fields need another look; they say why.");
    try {
      await work();
    } catch (error) {
      if (error instanceof ApiError) setProblems(shownAt(schema, error.issues.filter((each) => each.path.startsWith("/config/")).map((each) => ({ ...each, path: each.path.slice(7) }))));
      throw error;
    }
  };
  const test = useAction(() => placed(async () => {
    setReport(undefined);
    const { driver, config, envVars, name } = bodyOf(draft, schema);
    setReport(await api.post("/api/companies/{company}/environments/probe-config", { path: { company: company.id }, body: { name: name || null, driver, config, envVars } }));
  }));
  const save = useAction(() => placed(async () => {
    const saved = !stored
      ? await api.post("/api/companies/{company}/environments", { path: { company: company.id }, body: bodyOf(draft, schema) })
      : await api.patch("/api/environments/{environment}", { path: { environment: stored.id }, body: isFixed ? { envVars: storedVariables(draft.variables) } : bodyOf(draft, schema) });
    await queries.invalidateQueries();
    await navigate({ to: "/environments/$environment", params: { environment: saved.id } });
  }));
  const error = save.error ?? test.error;
  const nameIssue = error instanceof ApiError ? error.issues.find((each) => each.path === "/name")?.message : undefined;
  return (
    <Page title={stored ? `Edit ${stored.name}` : "New environment"} about={isFixed ? "Berth keeps this environment; only its variables can be changed." : "A named place where work may run."}>
      <form className="flex flex-col gap-4" noValidate onSubmit={(event: FormEvent) => { event.preventDefault(); void save.run(); }}>
        <fieldset disabled={isFixed} className="contents">
          <Panel title="What it is">
            <div className="grid gap-4 sm:grid-cols-2">
              <Field label="Name" required error={nameIssue}>{(id) => <input id={id} className={input} required aria-invalid={Boolean(nameIssue)} value={draft.name} onChange={(event) => set({ name: event.target.value })} />}</Field>
              <Field label="Description">{(id) => <input id={id} className={input} value={draft.description} onChange={(event) => set({ description: event.target.value })} />}</Field>
              <DriverChoice draft={draft} capabilities={capabilities} stored={stored} onChange={(change) => { set(change); setProblems([]); }} />
            </div>
          </Panel>
          {draft.driver !== "local" && (
            <Panel title="Configuration">
              {Object.keys(schema.properties ?? {}).length === 0 ? <p className="text-sm text-muted">There is nothing to configure.</p>
                : <SchemaForm key={`${draft.driver} ${draft.provider}`} schema={schema} value={draft.config} problems={problems} disabled={isFixed} onChange={(config) => set({ config })} />}
            </Panel>
          )}
        </fieldset>
        <Panel title="Variables"><Variables value={draft.variables} onChange={(variables) => set({ variables })} /></Panel>
        {error !== undefined && <ErrorBox error={error} />}
        {report && <Panel title="Test"><Probe report={report} /></Panel>}
        <div className="sticky bottom-0 flex justify-end gap-2 border-t border-line bg-ground py-3">
          <Link to="/environments" className={buttonClass()}>Cancel</Link>
          {!isFixed && <Button busy={test.busy} onClick={() => void test.run()}>Test this draft</Button>}
          <Button tone="primary" type="submit" busy={save.busy} disabled={!draft.name.trim()}>Save</Button>
        </div>
      </form>
    </Page>
  );
}

interface DriverChoiceProps {
  draft: Draft;
  capabilities: Capabilities;
  stored: Environment | undefined;
  onChange: (change: Partial<Draft>) => void;
}

function DriverChoice({ draft, capabilities, stored, onChange }: DriverChoiceProps) {
  const providers = runnable(capabilities);
  const drivers: Driver[] = ["ssh"];
  if (providers.length > 0) drivers.unshift("sandbox");
  if (stored && !drivers.includes(stored.driver)) drivers.push(stored.driver);
  const chosen = providers.find((each) => each.key === draft.provider);
  return (
    <>
      <Field label="Kind">{(id) => (
        <select id={id} className={input} value={draft.driver} onChange={(event) => onChange({ driver: event.target.value as Driver, provider: event.target.value === "sandbox" ? (providers[0]?.key ?? "") : "", config: {} })}>
          {drivers.map((each) => <option key={each} value={each}>{driverNames[each]}</option>)}
        </select>
      )}</Field>
      {draft.driver === "sandbox" && (
        <Field label="Provider" hint={chosen?.description ?? undefined}>{(id, about) => (
          <select id={id} aria-describedby={about} className={input} value={draft.provider} onChange={(event) => onChange({ provider: event.target.value, config: {} })}>
            {!chosen && <option value={draft.provider}>{draft.provider} (not available)</option>}
            {providers.map((each) => <option key={each.key} value={each.key}>{each.displayName}</option>)}
          </select>
        )}</Field>
      )}
    </>
  );
}
