import { useQuery } from "@tanstack/react-query";
import type { RJSFSchema } from "@rjsf/utils";
import { useMemo, useState } from "react";
import { adaptersQuery } from "../api/queries";
import type { Agent } from "../api/types";
import { Variables, storedVariables, variablesOf, type Variable } from "../environments/variables";
import { SchemaForm } from "../forms/schema-form";
import type { Problem } from "../forms/validator";
import { ErrorBox } from "../ui/error-box";

type Config = Record<string, unknown>;

interface Props {
  adapter: Agent["adapterType"];
  value: Config;
  problems: Problem[];
  onChange: (value: Config) => void;
}

// Variables have a form of their own, and the server says which other key it does not know.
function schemaOf(whole: Record<string, unknown> | undefined): RJSFSchema | undefined {
  if (!whole) return undefined;
  const { env: _, ...properties } = (whole["properties"] ?? {}) as Record<string, RJSFSchema>;
  const { additionalProperties: __, ...rest } = whole;
  return { ...rest, properties } as RJSFSchema;
}

// The config of an agent's adapter: a form for what the adapter knows, and its variables. Other keys stay as they are.
export default function AdapterConfig({ adapter, value, problems, onChange }: Props) {
  const adapters = useQuery(adaptersQuery());
  const schema = useMemo(() => schemaOf(adapters.data?.find((each) => each.adapterType === adapter)?.configSchema), [adapters.data, adapter]);
  const { env, ...fields } = value;
  const unknown = schema ? Object.keys(fields).filter((key) => !(key in (schema.properties ?? {}))) : [];
  // A row without a name is shown and not stored, so the rows are more than the value tells.
  const [variables, setVariables] = useState(() => variablesOf((env ?? {}) as Record<string, unknown>));
  const change = (next: Variable[]) => {
    setVariables(next);
    onChange({ ...fields, env: storedVariables(next) });
  };
  return (
    <>
      {adapters.error && <ErrorBox error={adapters.error} />}
      {schema && <SchemaForm key={adapter} schema={schema} value={fields} problems={problems} onChange={(next) => onChange({ ...next, env: storedVariables(variables) })} />}
      {unknown.length > 0 && <p className="text-sm text-muted">Kept, and not known to this adapter: {unknown.join(", ")}</p>}
      <fieldset>
        <legend className="mb-1 text-sm font-medium">Variables</legend>
        <Variables value={variables} onChange={change} />
      </fieldset>
    </>
  );
}
