import { useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { api } from "../api/client";
import { ApiError } from "../api/error";
import { Button } from "../ui/button";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";

// The key goes to the server once and comes back as a cookie that no script can read.
export function SignIn({ problem }: { problem?: string }) {
  const queries = useQueryClient();
  const [key, setKey] = useState("");
  const [error, setError] = useState<unknown>(problem);
  const [busy, setBusy] = useState(false);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await api.post("/api/session", { body: { key: key.trim() } });
      await queries.invalidateQueries({ queryKey: ["session"] });
    } catch (reason) {
      const refused = reason instanceof ApiError && reason.status === 401;
      setError(refused ? new ApiError(401, reason.code, "This key is not valid on this server.", "It may have expired or been revoked; an administrator makes a new one with 'berth token create'.", []) : reason);
    } finally {
      setBusy(false);
    }
  };

  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center gap-4 p-6">
      <h1 className="text-xl font-semibold">Sign in to Berth</h1>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <Field label="Key" hint="The first administrator's key is in the file admin.token of the server's home folder.">
          {(id) => (
            <input id={id} className={input} type="password" autoComplete="current-password" autoFocus required
              value={key} onChange={(event) => setKey(event.target.value)} />
          )}
        </Field>
        {error !== undefined && <ErrorBox error={error} />}
        <Button tone="primary" type="submit" busy={busy}>Sign in</Button>
      </form>
    </main>
  );
}
