import type { RJSFSchema, UiSchema } from "@rjsf/utils";
import { label } from "../format";

type Schema = RJSFSchema;

// Fields that a newcomer should see in the long schema of a plugin that marks none as advanced; its others are folded away.
const common = new Set(["image", "template", "memoryMb", "cpus", "network", "timeoutMs", "apiKey", "region", "reuseLease"]);

const units: [RegExp, string][] = [
  [/Ms$/, ""], [/Mb$/, " (MiB)"], [/Gb$/, " (GiB)"], [/Minutes$/, " (minutes)"], [/Seconds$/, " (seconds)"], [/Sec$/, " (seconds)"],
];

// For a schema without titles: "timeoutMs" is "Timeout", "memoryMb" is "Memory (MiB)".
export function titleOf(key: string): string {
  for (const [end, unit] of units) if (end.test(key)) return label(key.replace(end, "")) + unit;
  return label(key);
}

const isNull = (schema: unknown) => (schema as Schema | undefined)?.type === "null";

// "a string or nothing" is an optional string: who leaves it empty sends nothing.
function withoutNull(schema: Schema): Schema {
  const choices = schema.anyOf ?? schema.oneOf;
  if (!choices || choices.length !== 2 || !choices.some(isNull)) return schema;
  const { anyOf: _any, oneOf: _one, ...rest } = schema;
  return { ...(choices.find((each: unknown) => !isNull(each)) as Schema), ...rest };
}

const secretFormats = new Set(["secret-ref", "password"]);
export const isSecret = (schema: Schema) => secretFormats.has(schema.format ?? "");
export const isDuration = (key: string, schema: Schema) => key.endsWith("Ms") && (schema.type === "integer" || schema.type === "number");

function marked(schema: Schema, mark: string): boolean {
  const extras = schema as Record<string, unknown>;
  return extras[`x-berth-${mark}`] === true || extras[`x-paperclip-${mark}`] === true;
}

// Where the value of a secret goes when it is pasted: the keys of references, each with the key of its value.
export function valueKeys(schema: Schema): [string, string][] {
  return Object.entries((schema.properties ?? {}) as Record<string, Record<string, unknown>>)
    .map(([key, each]) => [key, each["x-berth-value-key"]] as [string, unknown])
    .filter((pair): pair is [string, string] => typeof pair[1] === "string");
}

// A problem with a pasted value is shown at its reference, which is what the form has.
export function shownAt<T extends { path: string }>(schema: Schema, problems: T[]): T[] {
  const references = new Map(valueKeys(schema).map(([reference, key]) => [`/${key}`, `/${reference}`]));
  return problems.map((each) => ({ ...each, path: references.get(each.path) ?? each.path }));
}

// The schema by which the page checks. A secret may be a text, an id or a reference; the server decides.
export function judgeable(schema: Schema): Schema {
  if (isSecret(schema)) return {};
  const result: Schema = { ...schema };
  if (schema.properties) result.properties = Object.fromEntries(Object.entries(schema.properties).map(([key, each]) => [key, judgeable(each as Schema)]));
  if (schema.items && !Array.isArray(schema.items)) result.items = judgeable(schema.items as Schema);
  return withoutNull(result);
}

// The schema as it is drawn: titles that a person reads, and no choice between something and nothing.
export function drawable(schema: Schema): Schema {
  if (isSecret(schema)) return { type: "string", format: "secret-ref", title: schema.title, description: schema.description } as Schema;
  const shown = withoutNull(schema);
  const result: Schema = { ...shown };
  if (shown.properties) {
    const drawn = Object.entries(shown.properties).filter(([, each]) => !marked(each as Schema, "hidden"));
    result.properties = Object.fromEntries(
      drawn.map(([key, each]) => {
        const inner = drawable(each as Schema);
        return [key, { ...inner, title: inner.title ?? titleOf(key) }];
      }),
    );
  }
  if (shown.items && !Array.isArray(shown.items)) result.items = drawable(shown.items as Schema);
  if (shown["$defs"]) {
    result["$defs"] = Object.fromEntries(Object.entries(shown["$defs"] as Record<string, Schema>).map(([key, each]) => [key, drawable(each)]));
  }
  return result;
}

// Which control each field has, and which fields are folded away.
export function lookOf(schema: Schema): UiSchema {
  const look: UiSchema = {};
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Schema>);
  const required = new Set(schema.required ?? []);
  const isSorted = properties.some(([, each]) => marked(each, "advanced"));
  const advanced: string[] = [];
  for (const [key, each] of properties) {
    const inner: UiSchema = lookOf(each);
    if (isSecret(each)) inner["ui:widget"] = "secret";
    else if (isDuration(key, each)) inner["ui:widget"] = "duration";
    else if (each.type === "string" && !each.enum && ((each.maxLength ?? 0) > 200 || each.format === "textarea")) inner["ui:widget"] = "textarea";
    if (Object.keys(inner).length > 0) look[key] = inner;
    const isFolded = isSorted ? marked(each, "advanced") : properties.length > 8 && !common.has(key) && !required.has(key);
    if (isFolded) advanced.push(key);
  }
  if (advanced.length > 0) look["ui:options"] = { advanced };
  if (schema.items && !Array.isArray(schema.items)) {
    const inner = lookOf(schema.items as Schema);
    if (Object.keys(inner).length > 0) look["items"] = inner;
  }
  return look;
}

// What is empty is not sent: "" and empty lists of fields that have no value otherwise.
export function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty).filter((each) => each !== undefined);
  if (value === "" || value === null) return undefined;
  if (typeof value !== "object") return value;
  const entries = Object.entries(value as object).map(([key, each]) => [key, withoutEmpty(each)] as const).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries);
}
