import { useMemo, useState } from "react";
import type { Agent } from "../api/types";
import { Variables, storedVariables, variablesOf, type Variable } from "../environments/variables";
import { SchemaForm } from "../forms/schema-form";
import type { Problem } from "../forms/validator";
import { adapterSchema } from "./adapter-schema";

type Config = Record<string, unknown>;

interface Props {
  adapter: Agent["adapterType"];
  value: Config;
  problems: Problem[];
  onChange: (value: Config) => void;
}

// The config of an agent's adapter: a form for what the adapter knows, and its variables. Other keys stay as they are.
export default function AdapterConfig({ adapter, value, problems, onChange }: Props) {
  const schema = useMemo(() => adapterSchema(adapter), [adapter]);
  const { env, ...fields } = value;
  // A row without a name is shown and not stored, so the rows are more than the value tells.
  const [variables, setVariables] = useState(() => variablesOf((env ?? {}) as Record<string, unknown>));
  const change = (next: Variable[]) => {
    setVariables(next);
    onChange({ ...fields, env: storedVariables(next) });
  };
  return (
    <>
      <SchemaForm key={adapter} schema={schema} value={fields} problems={problems} onChange={(next) => onChange({ ...next, env: storedVariables(variables) })} />
      <fieldset>
        <legend className="mb-1 text-sm font-medium">Variables</legend>
        <Variables value={variables} onChange={change} />
      </fieldset>
    </>
  );
}
