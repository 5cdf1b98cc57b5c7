import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import type { RunState } from "../api/types";
import { count, words } from "../format";
import type { RunSearch } from "../router";
import { Late, late } from "../late";
import { RunRow } from "../runs/run-row";
import { useRunList } from "../runs/use-run-list";
import { useSession } from "../session/session";
import { Button } from "../ui/button";
import { Empty } from "../ui/empty";
import { ErrorBox } from "../ui/error-box";
import { input } from "../ui/field";
import { Page } from "../ui/page";
import { VirtualList } from "../ui/virtual-list";

const StartRunDialog = late((rest) => rest.StartRunDialog);
const states: RunState[] = ["queued", "starting", "running", "succeeded", "failed", "cancelled", "timed_out", "interrupted"];
const route = getRouteApi("/runs");

export function RunsPage() {
  const { company, environments, agents, may } = useSession();
  const filter = route.useSearch();
  const navigate = useNavigate();
  const [starting, setStarting] = useState(false);
  const runs = useRunList(company.id, filter);
  const set = useCallback(
    (change: RunSearch) => void navigate({ to: "/runs", search: { ...filter, ...change }, replace: true }),
    [navigate, filter],
  );
  const isFiltered = Boolean(filter.status || filter.environment || filter.agent || filter.search);
  return (
    <Page title="Runs" about={runs.state === "ready" ? `${count(runs.rows.length, "run")}${runs.next ? " loaded, more below" : ""}` : "Loading…"}
      actions={may("company_operate") && <Button tone="primary" onClick={() => setStarting(true)}>Start a run</Button>}>
      <search className="flex flex-wrap gap-2">
        <SearchBox value={filter.search ?? ""} onChange={(search) => set({ search: search || undefined })} />
        <Choice label="State" value={filter.status} onChange={(status) => set({ status })} options={states.map((each) => [each, words(each)])} />
        <Choice label="Environment" value={filter.environment} onChange={(environment) => set({ environment })} options={environments.map((each) => [each.id, each.name])} />
        {agents.length > 0 && <Choice label="Agent" value={filter.agent} onChange={(agent) => set({ agent })} options={agents.map((each) => [each.id, each.name])} />}
      </search>
      {runs.error !== undefined && <ErrorBox error={runs.error} />}
      {runs.state === "ready" && runs.rows.length === 0 ? (
        <Empty title={isFiltered ? "No run fits" : "Nothing has run yet"}>
          {isFiltered ? "Take away a filter, or search for another word." : "Start a run, here or with `berth run -- echo hello`, and watch it."}
        </Empty>
      ) : (
        <VirtualList key={runs.list} label="Runs" count={runs.rows.length} rowHeight={44} onEnd={runs.more} row={(at) => <RunRow run={runs.rows[at]!} />} />
      )}
      {starting && <Late><StartRunDialog open onClose={() => setStarting(false)} /></Late>}
    </Page>
  );
}

function SearchBox({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const [text, setText] = useState(value);
  return (
    <form role="search" className="min-w-48 flex-1" onSubmit={(event) => { event.preventDefault(); onChange(text.trim()); }}>
      <label htmlFor="run-search" className="sr-only">Search commands, errors and ids</label>
      <input id="run-search" className={input} type="search" placeholder="Search commands, errors and ids, then Enter" value={text}
        onChange={(event) => { setText(event.target.value); if (!event.target.value) onChange(""); }} />
    </form>
  );
}

interface ChoiceProps {
  label: string;
  value: string | undefined;
  options: [string, string][];
  onChange: (value: string | undefined) => void;
}

function Choice({ label, value, options, onChange }: ChoiceProps) {
  return (
    <select aria-label={label} className={`${input} !w-auto`} value={value ?? ""} onChange={(event) => onChange(event.target.value || undefined)}>
      <option value="">{label}: any</option>
      {options.map(([id, name]) => <option key={id} value={id}>{name}</option>)}
    </select>
  );
}
