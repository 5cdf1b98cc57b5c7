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
  agent_key_refused: "Give the agent a valid key as a secret in its variables.",
  agent_quota_exceeded: "Wait, or raise the quota of the account that the key belongs to.",
  agent_model_unknown: "Set the agent's model to one that its key may use.",
  agent_model_overloaded: "Invoke the agent again later.",
  agent_model_unreachable: "Allow the model's host in the egress rules of the environment.",
  agent_model_unreadable: "Check the address of the model server, and which proxy answers in its place.",
  agent_egress_denied: "Add the model's host to the egress rules of the environment.",
  agent_turn_limit: "Raise the agent's turn limit, or invoke it again to go on.",
  agent_session_lost: "Invoke the agent with a fresh session.",
  agent_root_refused: "Choose another permission mode, or another user.",
  agent_instructions_missing: "Put the text into the agent's instructions.",
  timed_out: "It took longer than its time limit; give it more time or less to do.",
  process_lost: "The process that held it is gone; run it again.",
  lease_lapsed: "The server was away for longer than its work is held; run it again.",
  environment_not_found: "Choose another environment and run it again.",
  ssh_unreachable: "Test the environment: it names the step that fails.",
};

function remedyOf(code: string): string {
  return remedies[code] ?? "Test the environment to see whether it works, then run it again.";
}
