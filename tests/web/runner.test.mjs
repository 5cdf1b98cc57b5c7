import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "./lib/runner.mjs";

const main = fileURLToPath(new URL("./main.mjs", import.meta.url));

function run(...words) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...words], { encoding: "utf8" });
  return { status, stderr, names: stdout.split("\n").filter(Boolean) };
}

test("runner.lanes hold every test once and none is empty", () => {
  const all = run("--list").names;
  for (const count of [2, 3]) {
    const lanes = Array.from({ length: count }, (_, at) => run("--list", "--lane", `${at + 1}/${count}`).names);
    assert.ok(lanes.every((names) => names.length > 0), `an empty lane of ${count}`);
    assert.deepEqual(lanes.flat().sort(), [...all].sort());
  }
});

test("runner.no test, or a lane that does not exist, is a failure", () => {
  const none = run("no-test-has-this-name");
  assert.equal(none.status, 1);
  assert.match(none.stderr, /there is no test here whose name contains no-test-has-this-name/);
  assert.equal(run("--list", "no-test-has-this-name").status, 1);
  for (const lane of ["0/2", "3/2", "2", "a/b"]) assert.notEqual(run("--list", "--lane", lane).status, 0, lane);
  assert.notEqual(run("--list", "--no-such-option").status, 0);
});
