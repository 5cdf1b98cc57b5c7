import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { filesOfLane } from "./lib/lanes.mjs";
import { test } from "./lib/runner.mjs";

const files = readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith(".test.mjs")).sort();

function run(...words) {
  const main = fileURLToPath(new URL("./main.mjs", import.meta.url));
  return spawnSync(process.execPath, [main, ...words], { encoding: "utf8" });
}

test("runner.lanes hold every file once and none is empty", () => {
  for (const count of [1, 2, 3]) {
    const lanes = Array.from({ length: count }, (_, at) => filesOfLane(files, `${at + 1}/${count}`));
    assert.ok(lanes.every((lane) => lane.length > 0), `an empty lane of ${count}`);
    assert.deepEqual(lanes.flat().sort(), files);
  }
  for (const lane of ["0/2", "3/2", "2", "a/b"]) assert.throws(() => filesOfLane(files, lane), /write I\/N/, lane);
});

test("runner.a lane that holds no such test fails, and another runs it", () => {
  const [here, there] = filesOfLane(files, "1/2").includes("walls.test.mjs") ? ["1/2", "2/2"] : ["2/2", "1/2"];
  const listed = run("--list", "--lane", here, "web.walls.");
  assert.equal(listed.status, 0, listed.stderr);
  assert.match(listed.stdout, /^web\.walls\./);
  const none = run("--lane", there, "web.walls.");
  assert.equal(none.status, 1);
  assert.match(none.stderr, /there is no test here whose name contains web\.walls\./);
});
