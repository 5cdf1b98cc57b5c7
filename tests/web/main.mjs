import { readdirSync } from "node:fs";
import { closeBrowser } from "./lib/browser.mjs";
import { listAll, runAll } from "./lib/runner.mjs";
import { endServer } from "./lib/shared.mjs";

for (const file of readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith(".test.mjs")).sort()) {
  await import(`./${file}`);
}
const words = process.argv.slice(2);
const patterns = words.filter((word) => word !== "--list");
if (words.length > patterns.length) {
  listAll(patterns);
  process.exit(0);
}
const failures = await runAll(patterns);
await closeBrowser();
await endServer();
process.exit(failures ? 1 : 0);
