import type { ProbeReport, ProbeStep } from "../api/types";
import { duration, label } from "../format";
import { Badge } from "../ui/badge";

// A test as the list of its steps, each with its time; what failed says what to do.
export function Probe({ report }: { report: ProbeReport }) {
  const total = report.steps.reduce((sum, step) => sum + step.durationMs, 0);
  return (
    <div className="flex flex-col gap-2 text-sm" role="status">
      <p className="flex flex-wrap items-center gap-2">
        <Badge tone={report.ok ? "good" : "bad"}>{report.ok ? "works" : "does not work"}</Badge>
        <span className="min-w-0 break-words">{report.summary}</span>
        <span className="text-muted">{duration(total)} in all</span>
      </p>
      <ol className="divide-y divide-line rounded-md border border-line">
        {report.steps.map((step, at) => <Step key={`${step.name}-${at}`} step={step} />)}
      </ol>
      {report.details && Object.keys(report.details).length > 0 && (
        <details>
          <summary className="cursor-pointer text-muted">What the provider says</summary>
          <pre className="mt-1 max-h-60 overflow-auto rounded bg-hover p-2 text-xs" tabIndex={0}>{JSON.stringify(report.details, null, 2)}</pre>
        </details>
      )}
    </div>
  );
}

function Step({ step }: { step: ProbeStep }) {
  return (
    <li className="grid grid-cols-[4.5rem_minmax(0,1fr)_auto] gap-x-3 px-3 py-1.5">
      <span><Badge tone={step.ok ? "good" : "bad"}>{step.ok ? "ok" : "failed"}</Badge></span>
      <div className="min-w-0 break-words">
        <span className="font-medium">{label(step.name)}</span> <span className="text-muted">{step.message}</span>
        {step.remedy && <p>{step.remedy}</p>}
        {step.code && <p className="text-xs text-muted">{step.code}</p>}
      </div>
      <span className="text-right">{duration(step.durationMs)}</span>
    </li>
  );
}
