import { useNavigate } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";
import { api } from "../api/client";
import { ApiError } from "../api/error";
import { parseDuration } from "../format";
import { useSession } from "../session/session";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";

const fields: Record<string, string> = { "/cwd": "cwd", "/timeoutMs": "timeout", "/environmentId": "environment", "/args/1": "command" };

// A command line for the shell of the environment: pipes and quotes work as one expects.
export function StartRunDialog({ open, onClose, environment }: { open: boolean; onClose: () => void; environment?: string }) {
  const { company, environments } = useSession();
  const navigate = useNavigate();
  const [command, setCommand] = useState("echo hello");
  const [place, setPlace] = useState(environment ?? "");
  const [cwd, setCwd] = useState("");
  const [timeout, setTimeout] = useState("");
  const [terminal, setTerminal] = useState(false);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);

  const issue = (name: string) =>
    error instanceof ApiError ? error.issues.find((each) => fields[each.path] === name)?.message : undefined;
  const timeoutMs = timeout ? parseDuration(timeout) : undefined;
  const timeoutWrong = timeout !== "" && timeoutMs === undefined;

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const run = await api.post("/api/companies/{company}/runs", {
        path: { company: company.id },
        body: {
          command: "sh",
          args: ["-c", command],
          environmentId: place || null,
          cwd: cwd || null,
          timeoutMs: timeoutMs ?? null,
          ...(terminal ? { stdinOpen: true, terminal: { columns: 100, rows: 30 } } : {}),
        },
      });
      onClose();
      await navigate({ to: terminal ? "/runs/$run/terminal" : "/runs/$run", params: { run: run.id } });
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog open={open} onClose={onClose} title="Start a run" about="One command, in an environment, with its output kept.">
      <form onSubmit={submit} className="flex flex-col gap-3">
        <Field label="Command" required hint="Given to sh -c." error={issue("command")}>
          {(id, about) => <textarea id={id} aria-describedby={about} className={`${input} font-mono`} rows={3} required value={command} onChange={(event) => setCommand(event.target.value)} />}
        </Field>
        <Field label="Environment" error={issue("environment")}>
          {(id) => (
            <select id={id} className={input} value={place} onChange={(event) => setPlace(event.target.value)}>
              <option value="">Default of the company</option>
              {environments.map((each) => <option key={each.id} value={each.id}>{each.name} ({each.driver})</option>)}
            </select>
          )}
        </Field>
        <div className="grid gap-3 sm:grid-cols-2">
          <Field label="Folder" hint="Where it runs; empty for a fresh one." error={issue("cwd")}>
            {(id, about) => <input id={id} aria-describedby={about} className={`${input} font-mono`} value={cwd} onChange={(event) => setCwd(event.target.value)} />}
          </Field>
          <Field label="Time limit" hint="Such as 5 min; empty for none." error={timeoutWrong ? "Write a time such as 90 s or 5 min." : issue("timeout")}>
            {(id, about) => <input id={id} aria-describedby={about} aria-invalid={timeoutWrong} className={input} value={timeout} onChange={(event) => setTimeout(event.target.value)} />}
          </Field>
        </div>
        <label className="flex items-center gap-2 text-sm">
          <input type="checkbox" checked={terminal} onChange={(event) => setTerminal(event.target.checked)} />
          With a terminal, for programs that ask
        </label>
        {error !== undefined && <ErrorBox error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" type="submit" busy={busy} disabled={!command.trim() || timeoutWrong}>Start</Button>
        </div>
      </form>
    </Dialog>
  );
}
