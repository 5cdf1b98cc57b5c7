import { readdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { closeBrowser } from "./lib/browser.mjs";
import { filesOfLane } from "./lib/lanes.mjs";
import { listAll, runAll } from "./lib/runner.mjs";
import { endServer } from "./lib/shared.mjs";

const { values: options, positionals: patterns } = parseArgs({
  allowPositionals: true,
  options: { lane: { type: "string", default: "1/1" }, list: { type: "boolean", default: false } },
});
const files = readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith(".test.mjs"));
for (const file of filesOfLane(files, options.lane)) await import(`./${file}`);
if (options.list) {
  process.exit(listAll(patterns) ? 0 : 1);
}
const succeeded = await runAll(patterns);
await closeBrowser();
await endServer();
process.exit(succeeded ? 0 : 1);
