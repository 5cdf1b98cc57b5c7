import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Skip } from "./runner.mjs";

// What this machine offers, found by examining the machine and not by Berth's answer.
let looked;

function machine() {
  looked ??= JSON.parse(execFileSync("python3", [fileURLToPath(new URL("../../e2e/machine.py", import.meta.url))]));
  return looked;
}

export function needsSandboxes() {
  if (machine().whyNoSandbox) throw new Skip(machine().whyNoSandbox);
}

export function needsFreezer() {
  if (!machine().canBeFrozen) throw new Skip("no control group can be frozen here");
}
