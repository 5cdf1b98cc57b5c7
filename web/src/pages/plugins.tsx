import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api } from "../api/client";
import { pluginsQuery } from "../api/queries";
import { nameOf } from "../plugins/manifest";
import { useSession } from "../session/session";
import { StateBadge } from "../ui/badge";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Empty } from "../ui/empty";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";
import { Answer } from "../ui/loading";
import { Page } from "../ui/page";
import { Table } from "../ui/table";
import { Ago } from "../ui/time";
import { useAction } from "../ui/use-action";

export function PluginsPage() {
  const { may } = useSession();
  const query = useQuery(pluginsQuery());
  const [installing, setInstalling] = useState(false);
  return (
    <Page title="Plugins" about="Programs of their own that make sandboxes elsewhere."
      actions={may("instance_admin") && <Button tone="primary" onClick={() => setInstalling(true)}>Install a plugin</Button>}>
      <Answer query={query}>
        {(plugins) =>
          plugins.length === 0 ? (
            <Empty title="No plugin yet">A plugin adds a provider of sandboxes. Install one from a folder or by its package name; its provider is then offered to new environments.</Empty>
          ) : (
            <Table label="Plugins" head={["Name", "Version", "State", "From", "Installed"]}>
              {plugins.map((plugin) => (
                <tr key={plugin.id}>
                  <td><Link className="link font-medium" to="/plugins/$plugin" params={{ plugin: plugin.id }}>{nameOf(plugin)}</Link><p className="text-xs text-muted">{plugin.pluginKey}</p></td>
                  <td>{plugin.version}</td>
                  <td><StateBadge state={plugin.status} />{plugin.lastError && <p className="max-w-sm truncate text-xs text-danger-text" title={plugin.lastError}>{plugin.lastError}</p>}</td>
                  <td>{plugin.source}<p className="text-xs break-all text-muted">{plugin.packageName}</p></td>
                  <td><Ago at={plugin.installedAt} /></td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answer>
      <Install open={installing} onClose={() => setInstalling(false)} />
    </Page>
  );
}

function Install({ open, onClose }: { open: boolean; onClose: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [version, setVersion] = useState("");
  const isLocalPath = name.startsWith("/") || name.startsWith("./");
  const install = useAction(async () => {
    await api.post("/api/plugins/install", { body: { packageName: name.trim(), version: version.trim() || null, isLocalPath } });
    await queries.invalidateQueries();
    onClose();
  });
  return (
    <Dialog open={open} onClose={onClose} title="Install a plugin" about="It runs as a program of its own, with the rights that its manifest asks for. Install only what you trust.">
      <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void install.run(); }}>
        <Field label="Package" required hint="A folder on the server, which begins with /, or the name of an npm package.">{(id, about) => <input id={id} aria-describedby={about} className={`${input} font-mono`} required value={name} onChange={(event) => setName(event.target.value)} />}</Field>
        {!isLocalPath && <Field label="Version" hint="Empty for the newest.">{(id, about) => <input id={id} aria-describedby={about} className={input} value={version} onChange={(event) => setVersion(event.target.value)} />}</Field>}
        {install.error !== undefined && <ErrorBox error={install.error} />}
        <div className="flex justify-end gap-2"><Button onClick={onClose}>Cancel</Button><Button tone="primary" type="submit" busy={install.busy}>Install</Button></div>
      </form>
    </Dialog>
  );
}
