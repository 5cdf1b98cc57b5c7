import { readdirSync } from "node:fs";
import { closeBrowser } from "./lib/browser.mjs";
import { runAll } from "./lib/runner.mjs";
import { endServer } from "./lib/shared.mjs";

for (const file of readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith(".test.mjs")).sort()) {
  await import(`./${file}`);
}
const failures = await runAll(process.argv.slice(2));
await closeBrowser();
await endServer();
process.exit(failures ? 1 : 0);
