import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../api/client";
import { ApiError } from "../api/error";
import type { Plugin } from "../api/types";
import { withoutEmpty } from "../forms/schema";
import { SchemaForm } from "../forms/schema-form";
import type { Problem } from "../forms/validator";
import { useSession } from "../session/session";
import { Button } from "../ui/button";
import { ErrorBox } from "../ui/error-box";
import { Answer } from "../ui/loading";
import { useAction } from "../ui/use-action";
import { configSchemaOf } from "./manifest";

// What a company wants of a plugin, by the schema in the plugin's manifest.
export default function PluginConfig({ plugin }: { plugin: Plugin }) {
  const { company } = useSession();
  const query = useQuery({
    queryKey: ["plugin-config", plugin.id, company.id],
    queryFn: ({ signal }) => api.get("/api/plugins/{plugin}/config", { path: { plugin: plugin.id }, query: { companyId: company.id }, signal }),
    meta: { still: true },
  });
  return <Answer query={query}>{(row) => <Form plugin={plugin} stored={(row?.configJson ?? {}) as Record<string, unknown>} />}</Answer>;
}

function Form({ plugin, stored }: { plugin: Plugin; stored: Record<string, unknown> }) {
  const { company, may } = useSession();
  const queries = useQueryClient();
  const [value, setValue] = useState(stored);
  const [said, setSaid] = useState("");
  const body = () => ({ companyId: company.id, configJson: (withoutEmpty(value) ?? {}) as Record<string, never> });
  const test = useAction(async () => {
    const result = await api.post("/api/plugins/{plugin}/config/test", { path: { plugin: plugin.id }, body: body() });
    setSaid(result.valid ? (result.message ?? "The plugin accepts it.") : (result.message ?? "The plugin does not accept it."));
  });
  const save = useAction(async () => {
    await api.post("/api/plugins/{plugin}/config", { path: { plugin: plugin.id }, body: body() });
    setSaid("Saved.");
    await queries.invalidateQueries();
  });
  const schema = configSchemaOf(plugin);
  if (!schema) return <p className="text-sm text-muted">It has no settings of its own; what it takes is set in each environment.</p>;
  const error = save.error ?? test.error;
  const problems: Problem[] = error instanceof ApiError ? error.issues.map((each) => ({ ...each, path: each.path.replace(/^\/configJson/, "") })) : [];
  return (
    <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void save.run(); }}>
      <SchemaForm schema={schema} value={value} problems={problems} onChange={setValue} />
      {error !== undefined && <ErrorBox error={error} />}
      <div className="flex items-center justify-end gap-2">
        <p role="status" className="text-sm text-muted">{said}</p>
        {plugin.supportsConfigTest && <Button busy={test.busy} onClick={() => void test.run()}>Test</Button>}
        {may("instance_admin") && <Button tone="primary" type="submit" busy={save.busy}>Save</Button>}
      </div>
    </form>
  );
}
