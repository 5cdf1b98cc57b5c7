import { existsSync } from "node:fs";
import { Skip } from "./runner.mjs";

export const chromiumArgs = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"];

// Debian's Chromium, or the one that is named.
export function chromiumProgram() {
  const program = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(program)) throw new Skip(`there is no ${program}`);
  return program;
}
