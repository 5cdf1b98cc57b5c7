import type { RJSFSchema } from "@rjsf/utils";
import type { Capabilities, Driver, Environment, ProviderCapability } from "../api/types";
import { sshSchema } from "../forms/ssh-schema";
import { withoutEmpty } from "../forms/schema";
import { isSecretRef } from "./shown-value";
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
  if (draft.driver === "ssh") return sshSchema;
  if (draft.driver !== "sandbox") return nothing;
  const providers = capabilities.sandboxProviders as Record<string, ProviderCapability>;
  return (providers[draft.provider]?.configSchema ?? nothing) as RJSFSchema;
}

// The config as the API takes it.
export function configOf(draft: Draft): Record<string, unknown> {
  const config = (withoutEmpty(draft.config) ?? {}) as Record<string, unknown>;
  if (draft.driver === "sandbox") return { ...config, provider: draft.provider };
  const key = config["privateKeySecretRef"];
  if (draft.driver === "ssh" && typeof key === "string" && !isSecretRef(key)) {
    const { privateKeySecretRef: _pasted, ...rest } = config;
    return { ...rest, privateKey: key };
  }
  return config;
}

export function bodyOf(draft: Draft) {
  return { name: draft.name.trim(), description: draft.description.trim() || null, driver: draft.driver, config: configOf(draft), envVars: storedVariables(draft.variables) };
}
