import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import { useSession } from "../session/session";
import { Button } from "../ui/button";
import { input } from "../ui/field";
import { isSecretRef } from "./shown-value";

export interface Variable {
  name: string;
  kind: "plain" | "secret";
  value: string; // or the id of a secret
}

export function variablesOf(stored: Record<string, unknown>): Variable[] {
  return Object.entries(stored).map(([name, value]) => {
    if (isSecretRef(value)) return { name, kind: "secret", value: value.secretId };
    const plain = typeof value === "object" && value !== null ? (value as { value?: unknown }).value : value;
    return { name, kind: "plain", value: String(plain ?? "") };
  });
}

export function storedVariables(variables: Variable[]): Record<string, unknown> {
  const named = variables.filter((each) => each.name.trim());
  return Object.fromEntries(named.map(({ name, kind, value }) => [name.trim(), kind === "plain" ? { type: "plain", value } : { type: "secret_ref", secretId: value, version: "latest" }]));
}

const goodName = /^[A-Za-z_][A-Za-z0-9_]*$/;
const looksSecret = /(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)/i;

export function problemOf(variable: Variable, all: Variable[]): string | undefined {
  if (!variable.name) return variable.value ? "It needs a name." : undefined;
  if (!goodName.test(variable.name)) return "Letters, digits and _ only, and no digit first.";
  if (all.filter((each) => each.name === variable.name).length > 1) return "This name is there twice.";
  if (variable.kind === "secret" && !variable.value) return "Choose a secret.";
  return undefined;
}

// "A=1\nB='two'" as rows: the text of a .env file.
function pasted(text: string): Variable[] {
  return text.split("\n").map((line) => line.match(/^\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)$/)).filter((match) => match !== null)
    .map((match) => ({ name: match[1] ?? "", kind: "plain" as const, value: (match[2] ?? "").trim().replace(/^(["'])(.*)\1$/, "$2") }));
}

export function Variables({ value, onChange }: { value: Variable[]; onChange: (next: Variable[]) => void }) {
  const { company } = useSession();
  const catalog = useQuery({
    queryKey: ["secret-catalog", company.id],
    queryFn: ({ signal }) => api.get("/api/companies/{company}/secrets/catalog", { path: { company: company.id }, query: { limit: 1000 }, signal }),
  });
  const set = (at: number, change: Partial<Variable>) => onChange(value.map((each, index) => (index === at ? { ...each, ...change } : each)));
  return (
    <div className="flex flex-col gap-3">
      {value.map((each, at) => {
        const problem = problemOf(each, value);
        return (
          <div key={at} className="flex flex-col gap-1">
            <div className="grid gap-2 sm:grid-cols-[14rem_7rem_1fr_auto]">
              <input aria-label="Name of the variable" aria-invalid={Boolean(problem)} className={`${input} font-mono`} placeholder="NAME" value={each.name} onChange={(event) => set(at, { name: event.target.value })}
                onPaste={(event) => {
                  const rows = pasted(event.clipboardData.getData("text"));
                  if (rows.length === 0) return;
                  event.preventDefault();
                  onChange([...value.slice(0, at), ...rows, ...value.slice(at + 1)]);
                }} />
              <select aria-label={`Kind of ${each.name || "variable"}`} className={input} value={each.kind} onChange={(event) => set(at, { kind: event.target.value as Variable["kind"], value: "" })}>
                <option value="plain">plain</option>
                <option value="secret">secret</option>
              </select>
              {each.kind === "plain" ? (
                <input aria-label={`Value of ${each.name || "variable"}`} className={`${input} font-mono`} value={each.value} onChange={(event) => set(at, { value: event.target.value })} />
              ) : (
                <select aria-label={`Secret of ${each.name || "variable"}`} className={input} value={each.value} onChange={(event) => set(at, { value: event.target.value })}>
                  <option value="">Choose…</option>
                  {catalog.data?.map((secret) => <option key={secret.id} value={secret.id} disabled={secret.status !== "active"}>{secret.name}</option>)}
                </select>
              )}
              <Button onClick={() => onChange(value.filter((_, index) => index !== at))} aria-label={`Remove ${each.name || "variable"}`}>Remove</Button>
            </div>
            {problem && <p role="alert" className="text-xs text-danger-text">{problem}</p>}
            {!problem && each.kind === "plain" && looksSecret.test(each.name) && <p className="text-xs text-warn-text">This looks like a secret: keep it in Secrets and choose it here.</p>}
          </div>
        );
      })}
      <div className="flex items-center gap-3">
        <Button onClick={() => onChange([...value, { name: "", kind: "plain", value: "" }])}>Add a variable</Button>
        {value.length === 0 && <p className="text-sm text-muted">None. The text of a .env file may be pasted into a name.</p>}
      </div>
    </div>
  );
}
