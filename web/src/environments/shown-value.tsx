import { bytes, duration } from "../format";

// A value of a configuration as a person reads it: times and sizes with their units, secrets as such.
export function shownValue(key: string, value: unknown): React.ReactNode {
  if (value === null || value === undefined || value === "") return <span className="text-muted">not set</span>;
  if (typeof value === "number" && key.endsWith("Ms")) return duration(value);
  if (typeof value === "number" && key.endsWith("Mb")) return bytes(value * 1024 * 1024);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (isSecretRef(value)) return <span className="text-muted">secret …{value.secretId.slice(-8)}</span>;
  if (isPlain(value)) return <code className="break-all">{String(value.value)}</code>;
  if (typeof value === "object") return <code className="break-all">{JSON.stringify(value)}</code>;
  return <code className="break-all">{String(value)}</code>;
}

export function isSecretRef(value: unknown): value is { type: "secret_ref"; secretId: string } {
  return typeof value === "object" && value !== null && (value as { type?: unknown }).type === "secret_ref";
}

function isPlain(value: unknown): value is { type: "plain"; value: unknown } {
  return typeof value === "object" && value !== null && (value as { type?: unknown }).type === "plain";
}
