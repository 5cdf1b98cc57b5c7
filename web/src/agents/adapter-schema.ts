import type { RJSFSchema } from "@rjsf/utils";
import type { Agent } from "../api/types";

const advanced = { "x-berth-advanced": true };
const texts = { type: "array", items: { type: "string" } } as const;

const common: Record<string, RJSFSchema> = {
  command: { type: "string", title: "Command", description: "The program that is run, in the environment of the turn" },
  args: { ...texts, title: "Arguments" },
  cwd: { type: "string", title: "Folder", description: "Empty for the working folder of the run" },
  timeoutSec: { type: "number", minimum: 0, title: "Time limit (seconds)" },
  graceSec: { type: "number", minimum: 0, title: "Time to end by itself (seconds)", ...advanced },
  promptTemplate: { type: "string", format: "textarea", title: "Prompt", ...advanced },
};

const assistant: Record<string, RJSFSchema> = {
  model: { type: "string", title: "Model" },
  maxTurnsPerRun: { type: "number", minimum: 0, title: "Turns in a run, at most" },
  instructionsFilePath: { type: "string", title: "File with instructions", ...advanced },
  extraArgs: { ...texts, title: "More arguments", ...advanced },
};

const own: Record<Agent["adapterType"], Record<string, RJSFSchema>> = {
  process: {},
  claude_local: {
    ...assistant,
    effort: { type: "string", title: "Effort" },
    dangerouslySkipPermissions: { type: "boolean", title: "Let it act without asking", ...advanced },
  },
  codex_local: {
    ...assistant,
    modelReasoningEffort: { type: "string", title: "Effort" },
    search: { type: "boolean", title: "Let it search the web", ...advanced },
    dangerouslyBypassApprovalsAndSandbox: { type: "boolean", title: "Let it act without asking, and without a sandbox of its own", ...advanced },
  },
};

// What an adapter takes. The server has its rules in code, not as a schema; it names each field that it refuses.
export function adapterSchema(adapter: Agent["adapterType"]): RJSFSchema {
  return { type: "object", required: adapter === "process" ? ["command"] : [], properties: { ...common, ...own[adapter] } };
}
