import { useState, type FormEvent } from "react";
import { api } from "../api/client";
import { Button } from "../ui/button";
import { ErrorBox } from "../ui/error-box";
import { input } from "../ui/field";

interface Said {
  command: string;
  out: string;
  err: string;
  ended: string;
}

// One command after another in a place that is held; each waits for its end.
export function Console({ lease }: { lease: string }) {
  const [command, setCommand] = useState("");
  const [said, setSaid] = useState<Said[]>([]);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      const outcome = await api.post("/api/environment-leases/{lease}/exec", { path: { lease }, body: { argv: ["sh", "-c", command] } });
      const ended = outcome.signal ?? (outcome.exitCode === 0 ? "" : `exit status ${outcome.exitCode ?? "unknown"}`);
      setSaid((old) => [...old.slice(-49), { command, out: outcome.stdoutText, err: outcome.stderrText, ended }]);
      setCommand("");
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="flex flex-col gap-2">
      {said.length > 0 && (
        <div className="log max-h-80 overflow-auto rounded-lg border border-line p-3 font-mono text-xs" role="log" aria-label="Commands and what they said" tabIndex={0}>
          {said.map((each, at) => (
            <div key={at} className="mb-2">
              <p className="text-[#86b5ff]">$ {each.command}</p>
              <pre className="break-all whitespace-pre-wrap">{each.out}</pre>
              {each.err && <pre className="break-all whitespace-pre-wrap text-[#ff8a8a]">{each.err}</pre>}
              {each.ended && <p className="text-[#f0cf6e]">{each.ended}</p>}
            </div>
          ))}
        </div>
      )}
      <form onSubmit={submit} className="flex gap-2">
        <input aria-label="Command" className={`${input} font-mono`} placeholder="A command for sh, such as ls -la" required value={command} onChange={(event) => setCommand(event.target.value)} />
        <Button type="submit" busy={busy}>Run it</Button>
      </form>
      {error !== undefined && <ErrorBox error={error} />}
    </div>
  );
}
