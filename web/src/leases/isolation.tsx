import { count } from "../format";
import { Badge } from "../ui/badge";

// A measure that is not in force, why, and what would bring it back.
interface Missing {
  feature: string;
  reason?: string;
  remedy?: string;
}

interface Reported {
  level: string;
  features: string[];
  missing: Missing[];
}

const isText = (value: unknown): value is string => typeof value === "string";
const listIn = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const textIn = (value: unknown): string | undefined => (isText(value) && value ? value : undefined);

// A provider of a plugin may name what is missing and say no more.
function missingIn(value: unknown): Missing[] {
  if (isText(value)) return [{ feature: value }];
  const { feature, reason, remedy } = (value ?? {}) as Record<string, unknown>;
  return isText(feature) ? [{ feature, reason: textIn(reason), remedy: textIn(remedy) }] : [];
}

// What a provider has reported, if this is such a report.
export function isolationIn(value: unknown): Reported | undefined {
  const { level, features, missing } = (value ?? {}) as Record<string, unknown>;
  if (!isText(level)) return undefined;
  return { level, features: listIn(features).filter(isText), missing: listIn(missing).flatMap(missingIn) };
}

// What one remedy mends stands together, so that none is told twice.
function byRemedy(missing: Missing[]): [string, Missing[]][] {
  const groups = new Map<string, Missing[]>();
  for (const each of missing) {
    const remedy = each.remedy ?? "";
    groups.set(remedy, [...(groups.get(remedy) ?? []), each]);
  }
  return [...groups];
}

// What stands between the work and its machine, as it was found and not as it was asked for.
export function Isolation({ reported }: { reported: Reported }) {
  const { level, features, missing } = reported;
  return (
    <div className="flex flex-col gap-1">
      <p><Badge tone={missing.length > 0 ? "warn" : "good"}>{level}</Badge></p>
      {missing.length > 0 && (
        <ul aria-label="What is missing" className="flex flex-col gap-2">
          {byRemedy(missing).map(([remedy, those]) => (
            <li key={remedy}>
              {those.map(({ feature, reason }) => <p key={feature}><span className="text-warn-text">without {feature}</span>{reason && <>: {reason}</>}</p>)}
              {remedy && <p className="text-muted">Remedy: {remedy}</p>}
            </li>
          ))}
        </ul>
      )}
      {features.length > 0 && (
        <details>
          <summary className="cursor-pointer text-muted">{count(features.length, "measure")}</summary>
          <p className="text-muted">{features.join(", ")}</p>
        </details>
      )}
    </div>
  );
}
