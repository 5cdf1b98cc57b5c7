import type { RJSFSchema } from "@rjsf/utils";
import type { Capabilities, Driver, Environment, ProviderCapability } from "../api/types";
import { valueKeys, withoutEmpty } from "../forms/schema";
import { storedVariables, variablesOf, type Variable } from "./variables";

export interface Draft {
  name: string;
  description: string;
  driver: Driver;
  provider: string;
  config: Record<string, unknown>;
  variables: Variable[];
}

export type Provider = ProviderCapability & { key: string };

// Providers that can run work: `fake` is for tests of the server only.
export function runnable(capabilities: Capabilities): Provider[] {
  return Object.entries(capabilities.sandboxProviders as Record<string, ProviderCapability>)
    .filter(([key, each]) => key !== "fake" && each.status === "supported" && each.supportsRunExecution)
    .map(([key, each]) => ({ ...each, key }))
    .sort((a, b) => a.displayName.localeCompare(b.displayName));
}

export function newDraft(capabilities: Capabilities): Draft {
  // A sandbox of the server's own machine needs nothing else, so it is the first choice.
  const providers = runnable(capabilities);
  const first = providers.find((each) => each.key === "linux") ?? providers[0];
  return { name: "", description: "", driver: first ? "sandbox" : "ssh", provider: first?.key ?? "", config: {}, variables: [] };
}

export function draftOf(environment: Environment): Draft {
  const { provider, ...config } = environment.config as Record<string, unknown>;
  return {
    name: environment.name,
    description: environment.description ?? "",
    driver: environment.driver,
    provider: typeof provider === "string" ? provider : "",
    config: (withoutEmpty(config) ?? {}) as Record<string, unknown>,
    variables: variablesOf(environment.envVars as Record<string, unknown>),
  };
}

const nothing: RJSFSchema = { type: "object", properties: {} };

export function schemaOf(draft: Draft, capabilities: Capabilities): RJSFSchema {
  if (draft.driver !== "sandbox") return ((capabilities.driverSchemas as Record<string, RJSFSchema>)[draft.driver] ?? nothing);
  const providers = capabilities.sandboxProviders as Record<string, ProviderCapability>;
  return (providers[draft.provider]?.configSchema ?? nothing) as RJSFSchema;
}

// The fields of the schema, as the API takes them: a pasted value goes where the schema says, in place of its reference.
export function fieldsOf(draft: Draft, schema: RJSFSchema): Record<string, unknown> {
  const fields = { ...((withoutEmpty(draft.config) ?? {}) as Record<string, unknown>) };
  for (const [reference, key] of valueKeys(schema)) {
    if (typeof fields[reference] !== "string") continue;
    fields[key] = fields[reference];
    delete fields[reference];
  }
  return fields;
}

export function bodyOf(draft: Draft, schema: RJSFSchema) {
  const fields = fieldsOf(draft, schema);
  const config = draft.driver === "sandbox" ? { ...fields, provider: draft.provider } : fields;
  return { name: draft.name.trim(), description: draft.description.trim() || null, driver: draft.driver, config, envVars: storedVariables(draft.variables) };
}
