import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "./lib/runner.mjs";
import { until, visiting } from "./lib/shared.mjs";

test("leases.a live lease is shown with its run, its files and its console", visiting(async (page, visit, server) => {
  const company = await server.company();
  const run = await server.call("POST", `/api/companies/${company}/runs`, { command: "sh", args: ["-c", "echo hi > greeting.txt; sleep 120"] });
  await visit.goto("/leases");
  await page.getByText("active").first().waitFor();
  await visit.seen("leases");
  const view = await server.call("GET", `/api/heartbeat-runs/${run.id}`);
  await page.locator(`a[href="/leases/${view.environmentLease.id}"]`).click();
  await page.getByLabel("Command").fill("echo from-the-place");
  await page.getByRole("button", { name: "Run it" }).click();
  await page.getByRole("log").getByText("from-the-place", { exact: true }).waitFor();
  await page.getByText("Files", { exact: true }).click();
  await page.getByRole("link", { name: "greeting.txt" }).waitFor();
  await page.getByRole("button", { name: "Open a terminal" }).click();
  await page.locator(".xterm").waitFor();
  await page.waitForFunction(() => /[$#]/.test(document.querySelector(".xterm")?.textContent ?? ""));
  await page.locator(".xterm").click();
  await page.keyboard.type("echo $((40+2))-typed; cat greeting.txt\n");
  await page.waitForFunction(() => document.querySelector(".xterm").textContent.includes("42-typed"));
  await visit.seen("lease");
  await page.getByRole("button", { name: "Destroy" }).click();
  await page.getByText("gone for ever").waitFor();
  await visit.accessible("destroy a sandbox");
  await page.getByRole("button", { name: "Keep it" }).click();
  await server.call("POST", `/api/heartbeat-runs/${run.id}/cancel`);
  await page.getByText(/expired|released/).first().waitFor();
}));

test("secrets.one is made, rotated, disabled and deleted, and its value is never shown", visiting(async (page, visit, server) => {
  await visit.goto("/secrets");
  await page.getByRole("button", { name: "New secret" }).click();
  await page.getByLabel("Name").fill("Deploy key");
  await page.getByLabel("Value").fill("s3cr3t-value-one");
  await page.getByRole("button", { name: "Keep it" }).click();
  await page.getByRole("link", { name: "Deploy key" }).waitFor();
  await visit.seen("secrets");
  await page.getByRole("link", { name: "Deploy key" }).click();
  await page.getByLabel("Value").fill("s3cr3t-value-two");
  await page.getByRole("button", { name: "Rotate" }).click();
  await page.getByText("version 2").waitFor();
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Enable" }).waitFor();
  await visit.seen("secret");
  assert.ok(!(await page.content()).includes("s3cr3t-value"));
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByLabel(/Type the name/).fill("Deploy key");
  await page.getByRole("button", { name: "Delete it" }).click();
  await page.waitForURL((url) => url.pathname === "/secrets");
  assert.deepEqual((await server.call("GET", `/api/companies/${await server.company()}/secrets`)).filter((each) => each.name === "Deploy key"), []);
}));

test("agents.one is made, invoked and deleted", visiting(async (page, visit) => {
  await visit.goto("/agents");
  await page.getByRole("button", { name: "New agent" }).click();
  await page.getByLabel("Name").fill("Echo");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("is required: the program that the agent runs").first().waitFor();
  await page.getByLabel("Command").fill("echo");
  await page.getByRole("button", { name: "Add to Arguments" }).click();
  await page.locator("#root-args-0").fill("from-the-agent");
  await visit.seen("agent-form");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Invoke Echo" }).waitFor();
  await visit.seen("agents");
  await page.getByRole("button", { name: "Invoke Echo" }).click();
  await page.getByRole("button", { name: "Invoke", exact: true }).click();
  await page.getByRole("log").getByText("from-the-agent").waitFor();
  await page.getByRole("link", { name: "Agents" }).first().click();
  const row = page.getByRole("row").filter({ has: page.getByRole("button", { name: "Delete Echo" }) });
  await row.getByText(/just now|ago/).waitFor();
  assert.equal(await row.getByText("never").count(), 0);
  await page.getByRole("button", { name: "Delete Echo" }).click();
  await page.getByLabel(/Type the name/).fill("Echo");
  await page.getByRole("button", { name: "Delete it" }).click();
  await page.getByText("No agent yet").waitFor();
}));

// A program with the output format of Claude Code.
const standIn = (folder) => {
  const lines = [
    { type: "system", subtype: "init", session_id: "s-1", model: "opus" },
    { type: "assistant", message: { content: [{ type: "text", text: "I look around." }, { type: "tool_use", id: "t1", name: "Bash", input: { command: "ls -l" } }] } },
    { type: "user", message: { content: [{ type: "tool_result", tool_use_id: "t1", content: "a-file-there" }] } },
    { type: "result", subtype: "success", is_error: false, result: "Done.", total_cost_usd: 0.25, modelUsage: { opus: { inputTokens: 10, outputTokens: 3 } } },
  ];
  const program = join(folder, "claude");
  writeFileSync(program, `#!/bin/sh\n${lines.map((line) => `echo '${JSON.stringify(line)}'`).join("\n")}\n`, { mode: 0o755 });
  return program;
};

test("agents.a turn is read as a transcript, and as raw output on a second tab", visiting(async (page, visit, server) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-agent-"));
  const company = await server.company();
  const local = (await server.call("GET", `/api/companies/${company}/environments`)).find((each) => each.driver === "local");
  const agent = await server.call("POST", `/api/companies/${company}/agents`, { name: "Coder", adapterType: "claude_local", adapterConfig: { command: standIn(folder) } });
  const run = await server.call("POST", `/api/agents/${agent.id}/heartbeat/invoke`, { prompt: "Look around\nand stop", environmentId: local.id });
  await visit.goto(`/runs/${run.id}`);
  await page.getByRole("heading", { name: "Coder: Look around" }).waitFor();
  await page.getByText("I look around.").waitFor();
  await page.getByText("opus · 10 tokens in · 3 out · $0.25").waitFor();
  await page.getByText("ls -l").first().click();
  await page.getByText("a-file-there").waitFor();
  await visit.seen("transcript");
  await page.getByRole("tab", { name: "Raw output" }).click();
  await page.getByRole("log").getByText('"subtype":"init"').waitFor();
  await visit.goto("/runs");
  await page.getByRole("link", { name: "Coder: Look around" }).waitFor();
  await server.call("DELETE", `/api/agents/${agent.id}`);
  rmSync(folder, { recursive: true });
}));

test("activity.what happens appears by itself", visiting(async (page, visit, server) => {
  await server.run("echo an entry with many details");
  await visit.goto("/activity");
  await page.getByRole("table").waitFor();
  const company = await server.company();
  const made = await server.call("POST", `/api/companies/${company}/secrets`, { name: "seen-live", value: "x" });
  await page.getByText("secret: created").first().waitFor();
  await page.getByText("run: started").first().waitFor();
  const kind = page.getByLabel("Kind of object");
  await kind.selectOption({ label: "run" });
  await page.getByText("secret: created").first().waitFor({ state: "detached" });
  await page.getByText("run: started").first().waitFor();
  await kind.selectOption({ label: "Everything" });
  await page.getByText("secret: created").first().waitFor();
  const hidden = await page.getByRole("region", { name: "Activity" }).evaluate((box) => box.scrollWidth - box.clientWidth);
  assert.ok(hidden <= 0, `${hidden} px of the table are out of sight`);
  await visit.seen("activity");
  await server.call("DELETE", `/api/secrets/${made.id}`);
}));

test("settings.the default environment changes and keys are made and revoked", visiting(async (page, visit, server) => {
  await visit.goto("/settings");
  const company = await server.company();
  await page.getByLabel(/Where runs go/).selectOption({ label: "Sandbox" });
  const isSet = async () => Boolean((await server.call("GET", `/api/companies/${company}`)).defaultEnvironmentId);
  await until("the default environment is set", isSet);
  await page.getByLabel(/Where runs go/).selectOption("");
  await until("the default environment is none", async () => !(await isSet()));
  await page.getByLabel("Name of the key").fill("robot");
  await page.getByRole("button", { name: "Make a key" }).click();
  await page.getByTestId("new-key").waitFor();
  await page.getByRole("button", { name: "Revoke robot" }).click();
  await page.getByRole("button", { name: "Revoke it" }).click();
  await page.getByText("revoked").first().waitFor();
  await visit.seen("settings");
}));
