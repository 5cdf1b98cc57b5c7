import type { ArrayFieldTemplateProps, ErrorSchema, FieldTemplateProps, ObjectFieldTemplateProps, TemplatesType, WrapIfAdditionalTemplateProps } from "@rjsf/utils";
import { Button } from "../ui/button";
import { input } from "../ui/field";

function FieldTemplate(props: FieldTemplateProps) {
  const { id, label, required, rawErrors, schema, children, hidden, displayLabel } = props;
  if (hidden) return null;
  const isGroup = schema.type === "object";
  const isCheck = schema.type === "boolean";
  const description = schema.description;
  return (
    <WrapIfAdditional {...props}>
      <div className="flex flex-col gap-1">
        {!isGroup && !isCheck && displayLabel && label && <label htmlFor={id} className="text-sm font-medium">{label}{required && <span className="text-danger" aria-hidden="true"> *</span>}</label>}
        {children}
        <div id={`${id}__about`} className="text-xs">
          {rawErrors?.map((each) => <p key={each} role="alert" className="text-danger-text">{each}</p>)}
          {!isGroup && description && <p className="text-muted">{description}</p>}
        </div>
      </div>
    </WrapIfAdditional>
  );
}

// A field of a free-form map: its name is edited beside its value.
function WrapIfAdditional(props: FieldTemplateProps | WrapIfAdditionalTemplateProps) {
  const { id, label, onKeyChange, onDropPropertyClick, schema, children } = props;
  if (!(schema as Record<string, unknown>)["__additional_property"]) return <>{children}</>;
  return (
    <div className="grid grid-cols-[12rem_1fr_auto] items-start gap-2">
      <input aria-label="Name" className={`${input} font-mono`} defaultValue={label} onBlur={(event) => onKeyChange(event.target.value)} id={`${id}-key`} />
      <div className="[&_label]:sr-only">{children}</div>
      <Button onClick={onDropPropertyClick(label)} aria-label={`Remove ${label}`}>Remove</Button>
    </div>
  );
}

function hasErrors(errors: ErrorSchema | undefined): boolean {
  if (!errors) return false;
  return (errors.__errors?.length ?? 0) > 0 || Object.entries(errors).some(([key, each]) => key !== "__errors" && hasErrors(each as ErrorSchema));
}

function ObjectFieldTemplate(props: ObjectFieldTemplateProps) {
  const { properties, title, description, uiSchema, errorSchema, schema, onAddClick, idSchema } = props;
  const advanced = new Set((uiSchema?.["ui:options"] as { advanced?: string[] } | undefined)?.advanced ?? []);
  const plain = properties.filter((each) => !advanced.has(each.name));
  const folded = properties.filter((each) => advanced.has(each.name));
  const isRoot = idSchema.$id === "root";
  const isOpen = folded.some((each) => hasErrors((errorSchema as Record<string, ErrorSchema> | undefined)?.[each.name]));
  const body = (
    <>
      <div className="grid gap-4 sm:grid-cols-2">{plain.map((each) => <div key={each.name} className="min-w-0">{each.content}</div>)}</div>
      {schema.additionalProperties && <Button className="self-start" onClick={onAddClick(schema)}>Add an entry</Button>}
      {folded.length > 0 && (
        <details open={isOpen || undefined}>
          <summary className="cursor-pointer text-sm font-medium">More options</summary>
          <div className="mt-3 grid gap-4 sm:grid-cols-2">{folded.map((each) => <div key={each.name} className="min-w-0">{each.content}</div>)}</div>
        </details>
      )}
    </>
  );
  if (isRoot) return <div className="flex flex-col gap-4">{body}</div>;
  return (
    <fieldset className="flex flex-col gap-3 rounded-md border border-line p-3">
      <legend className="px-1 text-sm font-medium">{title}</legend>
      {description && <p className="text-xs text-muted">{description}</p>}
      {body}
    </fieldset>
  );
}

function ArrayFieldTemplate({ items, canAdd, onAddClick, title, schema }: ArrayFieldTemplateProps) {
  return (
    <div role="group" aria-label={title} className="flex flex-col gap-2">
      <p className="text-sm font-medium">{title}</p>
      {items.length === 0 && <p className="rounded-md border border-dashed border-line px-3 py-2 text-sm text-muted">Nothing in it.</p>}
      {items.map((item) => (
        <div key={item.key} className="flex items-start gap-2">
          <div className="min-w-0 flex-1 [&_label]:sr-only">{item.children}</div>
          <Button onClick={item.onDropIndexClick(item.index)} aria-label={`Remove entry ${item.index + 1} of ${title}`}>Remove</Button>
        </div>
      ))}
      {canAdd && items.length < (schema.maxItems ?? Infinity) && <Button className="self-start" onClick={onAddClick} aria-label={`Add to ${title}`}>Add</Button>}
    </div>
  );
}

const Nothing = () => null;

export const templates: Partial<TemplatesType> = {
  FieldTemplate, ObjectFieldTemplate, ArrayFieldTemplate,
  WrapIfAdditionalTemplate: ({ children }: WrapIfAdditionalTemplateProps) => <>{children}</>,
  ErrorListTemplate: Nothing, FieldErrorTemplate: Nothing, DescriptionFieldTemplate: Nothing, FieldHelpTemplate: Nothing,
};
