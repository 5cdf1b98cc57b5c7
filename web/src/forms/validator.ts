import { Validator, type OutputUnit, type Schema } from "@cfworker/json-schema";
import type { ErrorSchema, RJSFSchema, RJSFValidationError, ValidationData, ValidatorType } from "@rjsf/utils";

export interface Problem {
  path: string; // a JSON pointer
  message: string;
}

const steps = (pointer: string) => pointer.split("/").slice(1).map((each) => each.replaceAll("~1", "/").replaceAll("~0", "~"));

const bounds: Record<string, string> = { minimum: "must be at least", maximum: "must be at most" };

// What the schema says to people about its pattern, beside it.
function ruleAt(schema: RJSFSchema, keyword: string): string | undefined {
  let at: unknown = schema;
  for (const step of steps(keyword).slice(0, -1)) at = (at as Record<string, unknown> | undefined)?.[step];
  const rule = (at as Record<string, unknown> | undefined)?.["x-berth-rule"];
  return typeof rule === "string" ? rule : undefined;
}

// The library says "1 is less than 16.", which leaves the reader to find out what to write.
function sentence(schema: RJSFSchema, { keyword, keywordLocation, error }: OutputUnit): string {
  if (keyword === "pattern") return ruleAt(schema, keywordLocation) ?? error;
  const bound = error.match(/ than (\S+)\.$/)?.[1];
  const words = bounds[keyword];
  return words && bound ? `${words} ${bound}` : error;
}

// What is wrong, at its field. Summaries of a whole object are left out: its fields say it better.
export function problemsOf(schema: RJSFSchema, value: unknown): Problem[] {
  const result = new Validator(schema as Schema, "2020-12", false).validate(value ?? {});
  const problems: Problem[] = [];
  for (const error of result.errors) {
    if (["properties", "items", "$ref", "anyOf", "allOf", "format"].includes(error.keyword)) continue;
    const at = error.instanceLocation.slice(1);
    const missing = error.keyword === "required" ? error.error.match(/"([^"]+)"/)?.[1] : undefined;
    problems.push(missing ? { path: `${at}/${missing}`, message: "is required" } : { path: at, message: sentence(schema, error) });
  }
  return problems;
}

// Problems in the shape that the form library puts beside its fields.
export function errorSchemaOf(problems: Problem[]): ErrorSchema {
  const root: Record<string, unknown> = {};
  for (const problem of problems) {
    let at = root;
    for (const step of steps(problem.path)) at = (at[step] ??= {}) as Record<string, unknown>;
    ((at["__errors"] ??= []) as string[]).push(problem.message);
  }
  return root as ErrorSchema;
}

// The library's own validator compiles schemas with eval, which the content policy of the page forbids; this one walks them.
export const validator: ValidatorType = {
  isValid: (schema, value, root) => new Validator({ ...(schema as object), $defs: (root as Record<string, unknown>)["$defs"] } as Schema, "2020-12").validate(value).valid,
  rawValidation: () => ({ errors: [] }),
  toErrorList: (): RJSFValidationError[] => [],
  validateFormData: (value, schema): ValidationData<unknown> => ({ errors: [], errorSchema: errorSchemaOf(problemsOf(schema, value)) }),
};
