import { count } from "../format";
import { Badge } from "../ui/badge";

interface Reported {
  level: string;
  features?: string[];
  missing?: string[];
  remedy?: string | null;
}

// What a provider has reported, if this is such a report.
export function isolationIn(value: unknown): Reported | undefined {
  const report = value as Partial<Reported> | null | undefined;
  return typeof report?.level === "string" ? (report as Reported) : undefined;
}

// What stands between the work and its machine, as it was found and not as it was asked for.
export function Isolation({ reported }: { reported: Reported }) {
  const { level, features = [], missing = [], remedy } = reported;
  return (
    <div className="flex flex-col gap-1">
      <p className="flex flex-wrap items-center gap-2">
        <Badge tone={missing.length > 0 ? "warn" : "good"}>{level}</Badge>
        {missing.length > 0 && <span className="text-warn-text">without {missing.join(", ")}</span>}
      </p>
      {remedy && <p>{remedy}</p>}
      {features.length > 0 && (
        <details>
          <summary className="cursor-pointer text-muted">{count(features.length, "measure")}</summary>
          <p className="text-muted">{features.join(", ")}</p>
        </details>
      )}
    </div>
  );
}
