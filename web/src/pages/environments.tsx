import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { environmentsQuery } from "../api/queries";
import type { EnvironmentOverview } from "../api/types";
import { isolationOf, placeOf } from "../environments/describe";
import { Probe } from "../environments/probe";
import { useTest } from "../environments/use-test";
import { count } from "../format";
import { isolationIn } from "../leases/isolation";
import { useSession } from "../session/session";
import { Badge, StateBadge } from "../ui/badge";
import { Button, buttonClass } from "../ui/button";
import { Empty } from "../ui/empty";
import { ErrorBox } from "../ui/error-box";
import { Answer } from "../ui/loading";
import { Page } from "../ui/page";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";

export function EnvironmentsPage() {
  const { company, may } = useSession();
  const query = useQuery(environmentsQuery(company.id));
  const mayOperate = may("company_operate");
  return (
    <Page title="Environments" about="The places where work may run."
      actions={mayOperate && <Link to="/environments/new" className={buttonClass("primary")}>New environment</Link>}>
      <Answer query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No environment yet">Make one: this machine, a host over ssh, or a sandbox.</Empty>
          ) : (
            <Table label="Environments" head={["Name", "Driver", "Isolation", "Health", "Live leases", "Default of", ""]}>
              {rows.map((row) => <Row key={row.environment.id} row={row} mayTest={mayOperate} />)}
            </Table>
          )
        }
      </Answer>
    </Page>
  );
}

function Row({ row, mayTest }: { row: EnvironmentOverview; mayTest: boolean }) {
  const { environment, lastTest } = row;
  const test = useTest(environment.id);
  const tested = isolationIn(test.report?.details?.["isolation"] ?? lastTest?.isolation);
  const used = [row.isCompanyDefault ? "the company" : "", row.agentDefaultCount ? count(row.agentDefaultCount, "agent") : ""].filter(Boolean);
  return (
    <>
      <tr>
        <td className="min-w-44">
          <Link className="link font-medium" to="/environments/$environment" params={{ environment: environment.id }}>{environment.name}</Link>
          {environment.status !== "active" && <> <StateBadge state={environment.status} /></>}
          <p className="text-xs text-muted">{environment.description}</p>
        </td>
        <td className="whitespace-nowrap">{environment.driver}<p className="text-xs text-muted">{placeOf(environment)}</p></td>
        <td>{tested ? <><Badge tone={tested.missing.length ? "warn" : "good"}>{tested.level}</Badge><p className="text-xs text-muted">as tested</p></> : isolationOf(environment)}</td>
        <td>
          {lastTest ? (
            <span className="flex flex-wrap items-center gap-1.5" title={lastTest.summary}>
              <Badge tone={lastTest.ok ? "good" : "bad"}>{lastTest.ok ? "works" : "fails"}</Badge><span className="text-xs text-muted"><Ago at={lastTest.at} /></span>
            </span>
          ) : (
            <span className="text-muted">not tested</span>
          )}
        </td>
        <td>
          {row.liveLeaseCount}
          {row.pendingCleanupLeaseCount > 0 && <p className="text-xs text-warn-text">{row.pendingCleanupLeaseCount} to clean up</p>}
        </td>
        <td className="text-muted">{used.join(", ") || "none"}</td>
        <td className="text-right">{mayTest && <Button busy={test.busy} onClick={() => void test.run()} aria-label={`Test ${environment.name}`}>Test</Button>}</td>
      </tr>
      {(test.report || test.error !== undefined) && (
        <tr>
          <td colSpan={7}>{test.report ? <Probe report={test.report} /> : <ErrorBox error={test.error} />}</td>
        </tr>
      )}
    </>
  );
}
