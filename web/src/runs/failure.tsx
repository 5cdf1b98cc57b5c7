import type { RunView } from "../api/types";

// Why a run failed, and what to do about it.
export function Failure({ run }: { run: RunView }) {
  return (
    <div role="alert" className="rounded-md border border-danger/40 bg-danger/8 px-3 py-2 text-sm">
      <p className="font-medium break-words text-danger-text">{run.error}</p>
      {run.errorCode && <p className="mt-1 text-xs text-muted">{run.errorCode}: {remedyOf(run.errorCode)}</p>}
    </div>
  );
}

const remedies: Record<string, string> = {
  command_failed: "The command itself ended with an error; its output says why.",
  timed_out: "It took longer than its time limit; give it more time or less to do.",
  process_lost: "The process that held it is gone; run it again.",
  lease_lapsed: "The server was away for longer than its work is held; run it again.",
  environment_not_found: "Choose another environment and run it again.",
  ssh_unreachable: "Test the environment: it names the step that fails.",
};

function remedyOf(code: string): string {
  return remedies[code] ?? "Test the environment to see whether it works, then run it again.";
}
