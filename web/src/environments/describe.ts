import type { Environment } from "../api/types";

const part = (config: Record<string, unknown>, key: string) => {
  const value = config[key];
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
};

// Where an environment is, in a line.
export function placeOf(environment: Environment): string {
  const config = environment.config as Record<string, unknown>;
  if (environment.configRedacted) return "";
  if (environment.driver === "local") return "this machine";
  if (environment.driver === "ssh") {
    const port = part(config, "port");
    return `${part(config, "username") ?? "?"}@${part(config, "host") ?? "?"}${port && port !== "22" ? `:${port}` : ""}`;
  }
  const first = ["template", "image", "region", "workspacePath", "pluginKey"].map((key) => part(config, key)).find(Boolean);
  return [providerOf(environment), first].filter(Boolean).join(" · ");
}

export function providerOf(environment: Environment): string {
  const config = environment.config as Record<string, unknown>;
  return environment.driver === "sandbox" ? (part(config, "provider") ?? "") : "";
}

// What the sandboxes of this machine are refused below, where the config names no level.
const leastUnlessSaid = "weak";

// What stands between the work and the machine it runs on.
export function isolationOf(environment: Environment): string {
  const config = environment.config as Record<string, unknown>;
  if (environment.driver === "local") return "none";
  if (environment.driver === "ssh") return "a host of its own";
  const least = part(config, "minIsolation") ?? (providerOf(environment) === "linux" ? leastUnlessSaid : undefined);
  return least ? `at least ${least}` : "not reported";
}

export const isManaged = (environment: Environment) =>
  (environment.metadata as Record<string, unknown> | null | undefined)?.["managedByBerth"] === true;
