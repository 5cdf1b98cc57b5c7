import type { RJSFSchema } from "@rjsf/utils";
import type { Plugin } from "../api/types";

// What a plugin says of itself; every field may be missing or of another kind.
const field = (plugin: Plugin, key: string): unknown => (plugin.manifestJson as Record<string, unknown>)[key];

export function nameOf(plugin: Plugin): string {
  const name = field(plugin, "displayName");
  return typeof name === "string" && name ? name : plugin.pluginKey;
}

export function descriptionOf(plugin: Plugin): string {
  const text = field(plugin, "description");
  return typeof text === "string" ? text : "";
}

export function capabilitiesOf(plugin: Plugin): string[] {
  const list = field(plugin, "capabilities");
  return Array.isArray(list) ? list.filter((each): each is string => typeof each === "string") : [];
}

export function configSchemaOf(plugin: Plugin): RJSFSchema | undefined {
  const schema = field(plugin, "instanceConfigSchema");
  return typeof schema === "object" && schema !== null ? (schema as RJSFSchema) : undefined;
}
