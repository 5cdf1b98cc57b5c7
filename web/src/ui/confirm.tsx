import { useState, type ReactNode } from "react";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { ErrorBox } from "./error-box";
import { Field, input } from "./field";

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  about: ReactNode;
  action: string;
  // What must be typed before the button works: for what cannot be undone.
  name?: string;
  disabled?: boolean;
  act: () => Promise<unknown>;
}

export function Confirm({ open, onClose, title, about, action, name, disabled = false, act }: Props) {
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const close = () => {
    setTyped("");
    setError(undefined);
    onClose();
  };
  const submit = async (event: React.FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await act();
      close();
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog open={open} onClose={close} title={title} about={about}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        {name !== undefined && !disabled && (
          <Field label={`Type the name to confirm: ${name}`}>
            {(id) => <input id={id} className={input} value={typed} autoComplete="off" onChange={(event) => setTyped(event.target.value)} />}
          </Field>
        )}
        {error !== undefined && <ErrorBox error={error} />}
        <div className="flex justify-end gap-2">
          <Button onClick={close}>Keep it</Button>
          <Button tone="danger" type="submit" busy={busy} disabled={disabled || (name !== undefined && typed !== name)}>{action}</Button>
        </div>
      </form>
    </Dialog>
  );
}
