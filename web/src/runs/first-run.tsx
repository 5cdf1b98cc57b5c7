import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { runQuery } from "../api/queries";
import { LogView } from "../log/log-view";
import { useLog } from "../log/use-log";
import { StateBadge } from "../ui/badge";
import { Answer } from "../ui/loading";
import { Failure } from "./failure";
import { Timeline } from "./timeline";

// A run below the button that has started it.
export function FirstRun({ run }: { run: string }) {
  const query = useQuery(runQuery(run));
  const log = useLog(run);
  return (
    <div className="mt-4 flex flex-col gap-3">
      <Answer query={query}>
        {(view) => (
          <>
            <p className="flex items-center gap-2 text-sm"><StateBadge state={view.status} /><Link className="link" to="/runs/$run" params={{ run }}>Open this run</Link></p>
            {view.error && <Failure run={view} />}
            <Timeline phases={view.phases} />
          </>
        )}
      </Answer>
      <LogView log={log} name="first-run" />
    </div>
  );
}
