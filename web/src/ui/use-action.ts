import { useState } from "react";

// A button's work: whether it is under way, and what went wrong.
export function useAction<Args extends unknown[]>(work: (...args: Args) => Promise<unknown>) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const run = async (...args: Args) => {
    setBusy(true);
    setError(undefined);
    try {
      await work(...args);
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return { run, busy, error };
}
