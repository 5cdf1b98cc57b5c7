import Form from "@rjsf/core";
import type { RJSFSchema } from "@rjsf/utils";
import { useMemo } from "react";
import { drawable, lookOf } from "./schema";
import { templates } from "./templates";
import { errorSchemaOf, validator, type Problem } from "./validator";
import { widgets } from "./widgets";

interface Props {
  schema: RJSFSchema;
  value: Record<string, unknown>;
  problems: Problem[];
  disabled?: boolean;
  onChange: (value: Record<string, unknown>) => void;
}

// A form drawn from a JSON schema. What is wrong is decided by whoever uses it and shown at its field.
export function SchemaForm({ schema, value, problems, disabled = false, onChange }: Props) {
  const drawn = useMemo(() => drawable(schema), [schema]);
  const look = useMemo(() => lookOf(drawn), [drawn]);
  const errors = useMemo(() => errorSchemaOf(problems), [problems]);
  return (
    <Form schema={drawn} uiSchema={look} formData={value} extraErrors={errors} validator={validator} widgets={widgets} templates={templates}
      tagName="div" noValidate noHtml5Validate showErrorList={false} disabled={disabled} idSeparator="-"
      experimental_defaultFormStateBehavior={{ emptyObjectFields: "skipDefaults" }}
      onChange={(event) => onChange((event.formData ?? {}) as Record<string, unknown>)}>
      <></>
    </Form>
  );
}
