import type { RegistryWidgetsType, WidgetProps } from "@rjsf/utils";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { isSecretRef } from "../environments/shown-value";
import { duration, parseDuration } from "../format";
import { useSession } from "../session/session";
import { input } from "../ui/field";

const about = (props: WidgetProps) => `${props.id}__about`;
const isWrong = (props: WidgetProps) => (props.rawErrors?.length ?? 0) > 0;

function common(props: WidgetProps) {
  return { id: props.id, disabled: props.disabled || props.readonly, "aria-describedby": about(props), "aria-invalid": isWrong(props), className: input };
}

function TextWidget(props: WidgetProps) {
  const isNumber = props.schema.type === "integer" || props.schema.type === "number";
  const change = (text: string) => props.onChange(text === "" ? undefined : isNumber ? Number(text) : text);
  const fallback = props.schema.default;
  return (
    <input {...common(props)} type={isNumber ? "number" : "text"} step={props.schema.type === "number" ? "any" : undefined}
      min={props.schema.minimum} max={props.schema.maximum} value={(props.value as string | number | undefined) ?? ""}
      placeholder={fallback === undefined ? "" : `${String(fallback)} (default)`} onChange={(event) => change(event.target.value)} />
  );
}

function TextareaWidget(props: WidgetProps) {
  return <textarea {...common(props)} rows={4} className={`${input} font-mono`} value={(props.value as string | undefined) ?? ""} onChange={(event) => props.onChange(event.target.value || undefined)} />;
}

function CheckboxWidget(props: WidgetProps) {
  return (
    <label className="flex items-center gap-2 text-sm">
      <input type="checkbox" id={props.id} disabled={props.disabled || props.readonly} aria-describedby={about(props)}
        checked={Boolean(props.value ?? props.schema.default ?? false)} onChange={(event) => props.onChange(event.target.checked)} />
      {props.label}
    </label>
  );
}

function SelectWidget(props: WidgetProps) {
  const options = props.options.enumOptions ?? [];
  const at = options.findIndex((each) => each.value === props.value);
  if (props.multiple) {
    const chosen = new Set((props.value as unknown[] | undefined) ?? []);
    return (
      <div role="group" aria-label={props.label} className="flex flex-wrap gap-3 text-sm">
        {options.map((each) => (
          <label key={String(each.value)} className="flex items-center gap-1.5">
            <input type="checkbox" checked={chosen.has(each.value)} onChange={(event) => props.onChange(options.map((one) => one.value as unknown).filter((one) => (one === each.value ? event.target.checked : chosen.has(one))))} />
            {each.label}
          </label>
        ))}
      </div>
    );
  }
  return (
    <select {...common(props)} value={at < 0 ? "" : String(at)} onChange={(event) => props.onChange(event.target.value === "" ? undefined : options[Number(event.target.value)]?.value)}>
      {(!props.required || at < 0) && <option value="">{props.schema.default === undefined ? "Not set" : `${String(props.schema.default)} (default)`}</option>}
      {options.map((each, index) => <option key={index} value={String(index)}>{each.label}</option>)}
    </select>
  );
}

// A number of milliseconds that a person writes as "5 min".
function DurationWidget(props: WidgetProps) {
  const ms = props.value as number | undefined;
  const [text, setText] = useState(ms === undefined ? "" : duration(ms));
  const parsed = text.trim() ? parseDuration(text) : undefined;
  const isBad = text.trim() !== "" && parsed === undefined;
  return (
    <>
      <input {...common(props)} aria-invalid={isBad || isWrong(props)} value={text} placeholder={props.schema.default === undefined ? "such as 5 min" : `${duration(Number(props.schema.default))} (default)`}
        onChange={(event) => { setText(event.target.value); props.onChange(event.target.value.trim() ? parseDuration(event.target.value) : undefined); }}
        onBlur={() => parsed !== undefined && setText(duration(parsed))} />
      {isBad && <p role="alert" className="text-xs text-danger-text">Write a time such as 90 s or 5 min.</p>}
    </>
  );
}

const uuid = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

// A stored secret, or a value that becomes one when it is saved.
function SecretWidget(props: WidgetProps) {
  const { company } = useSession();
  const catalog = useQuery({
    queryKey: ["secret-catalog", company.id],
    queryFn: ({ signal }) => api.get("/api/companies/{company}/secrets/catalog", { path: { company: company.id }, query: { limit: 1000 }, signal }),
  });
  const value: unknown = props.value;
  const bound = isSecretRef(value) ? value.secretId : typeof value === "string" && uuid.test(value) ? value : undefined;
  const [pasting, setPasting] = useState(bound === undefined && typeof value === "string" && value !== "");
  const isKnown = !bound || catalog.data?.some((each) => each.id === bound);
  return (
    <div className="flex flex-col gap-1.5">
      <select {...common(props)} value={pasting ? "paste" : (bound ?? "")}
        onChange={(event) => {
          const chosen = event.target.value;
          setPasting(chosen === "paste");
          props.onChange(chosen === "" || chosen === "paste" ? undefined : { type: "secret_ref", secretId: chosen, version: "latest" });
        }}>
        <option value="">None</option>
        <option value="paste">Paste a value…</option>
        {!isKnown && bound && <option value={bound}>…{bound.slice(-8)} (its own)</option>}
        {catalog.data?.map((each) => <option key={each.id} value={each.id} disabled={each.status !== "active"}>{each.name}{each.status === "active" ? "" : ` (${each.status})`}</option>)}
      </select>
      {pasting && (
        <textarea aria-label={`Value of ${props.label}`} className={`${input} font-mono`} rows={3} spellCheck={false} autoComplete="off"
          value={typeof value === "string" ? value : ""} onChange={(event) => props.onChange(event.target.value || undefined)} />
      )}
      {pasting && <p className="text-xs text-muted">It is sealed when you save, and not shown again.</p>}
    </div>
  );
}

export const widgets: RegistryWidgetsType = {
  TextWidget, TextareaWidget, CheckboxWidget, SelectWidget, CheckboxesWidget: SelectWidget, PasswordWidget: SecretWidget,
  textarea: TextareaWidget, duration: DurationWidget, secret: SecretWidget,
};
