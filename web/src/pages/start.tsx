import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../api/client";
import { findingsQuery } from "../api/queries";
import type { Finding, Session } from "../api/types";
import { count } from "../format";
import { Late, late } from "../late";
import { useSession } from "../session/session";
import { StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { ErrorBox } from "../ui/error-box";
import { Answer } from "../ui/loading";
import { Page, Panel } from "../ui/page";
import { useAction } from "../ui/use-action";

const FirstRun = late((rest) => rest.FirstRun);
const ranks = ["sandbox", "plugin", "ssh", "local"];

// As Berth calls the one that it makes for a company; no other has its name.
const ownSandbox = "Sandbox";

// The strongest kind of place, and of that kind the one that Berth has made: it works where any does.
function bestOf(environments: Session["environments"]) {
  const rank = (each: Session["environments"][number]) => 2 * ranks.indexOf(each.driver) + (each.name === ownSandbox ? 0 : 1);
  return [...environments].sort((a, b) => rank(a) - rank(b))[0];
}

export function StartPage() {
  const { company, environments, may } = useSession();
  const [run, setRun] = useState<string>();
  const best = bestOf(environments);
  const start = useAction(async () => {
    const made = await api.post("/api/companies/{company}/runs", {
      path: { company: company.id },
      body: { command: "sh", args: ["-c", "echo Hello from $(uname -s) $(uname -r), as $(id -un), in $PWD"], environmentId: best?.id ?? null },
    });
    setRun(made.id);
  });
  return (
    <Page title="Start" about="Berth decides where work runs, keeps watch over it, and cleans up behind it.">
      {may("company_operate") && best && (
        <Panel title="Run something">
          <div className="flex flex-wrap items-center gap-3">
            <Button tone="primary" busy={start.busy} onClick={() => void start.run()}>
              {best.driver === "sandbox" ? "Run a command in a sandbox" : `Run a command in ${best.name}`}
            </Button>
            <p className="text-sm text-muted">
              {best.driver === "sandbox" ? `In ${best.name}: a fresh sandbox, which Berth deletes afterwards.` : "This machine offers no sandbox yet; what it lacks is listed below."}
            </p>
          </div>
          {start.error !== undefined && <div className="mt-3"><ErrorBox error={start.error} /></div>}
          {run && <Late><FirstRun key={run} run={run} /></Late>}
        </Panel>
      )}
      <Next />
      {may("company_operate") && <Machine />}
    </Page>
  );
}

function Next() {
  return (
    <ul className="grid gap-3 text-sm sm:grid-cols-3">
      {([
        ["/environments", "Environments", "Places where work may run: this machine, hosts over ssh, sandboxes."],
        ["/runs", "Runs", "What runs, what ran, what it said, and how long each phase took."],
        ["/agents", "Agents", "Programs that work, with their adapters and default environments."],
      ] as const).map(([to, name, says]) => (
        <li key={to} className="rounded-lg border border-line bg-raised p-4">
          <Link to={to} className="link font-medium">{name}</Link>
          <p className="mt-1 text-muted">{says}</p>
        </li>
      ))}
    </ul>
  );
}

function Machine() {
  const query = useQuery(findingsQuery());
  return (
    <Panel title="This machine">
      <Answer query={query}>{(findings) => <Findings findings={findings} />}</Answer>
    </Panel>
  );
}

function Findings({ findings }: { findings: Finding[] }) {
  const worries = findings.filter((each) => each.verdict === "warn" || each.verdict === "fail");
  const fine = findings.filter((each) => !worries.includes(each));
  return (
    <div className="flex flex-col gap-3 text-sm">
      {worries.length === 0 && <p>Everything that Berth needs is here.</p>}
      {worries.length > 0 && <FindingList findings={worries} />}
      <details>
        <summary className="cursor-pointer text-muted">{count(fine.length, "check")} without a problem</summary>
        <div className="mt-2"><FindingList findings={fine} /></div>
      </details>
    </div>
  );
}

function FindingList({ findings }: { findings: Finding[] }) {
  return (
    <ul className="flex flex-col gap-1.5">
      {findings.map((each, at) => (
        <li key={`${each.check}-${at}`} className="grid grid-cols-[3.5rem_1fr] gap-x-2">
          <span><StateBadge state={each.verdict} /></span>
          <div className="min-w-0">
            <p className="break-words"><span className="font-medium">{each.check}</span>: {each.says}</p>
            {each.remedy && each.verdict !== "ok" && <p className="break-words text-muted">{each.remedy}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}
