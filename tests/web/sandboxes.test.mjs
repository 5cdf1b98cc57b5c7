import assert from "node:assert/strict";
import { needsFreezer, needsSandboxes } from "./lib/machine.mjs";
import { test } from "./lib/runner.mjs";
import { environmentNamed, until, visiting } from "./lib/shared.mjs";

async function sandboxOf(server) {
  needsSandboxes();
  const sandbox = await environmentNamed(server, "Sandbox");
  assert.ok(sandbox, "the company has no sandbox, though this machine can make one");
  return sandbox;
}

async function typed(page, line, answer) {
  await page.locator(".xterm").waitFor();
  await page.waitForFunction(() => /[$#]/.test(document.querySelector(".xterm")?.textContent ?? ""));
  await page.locator(".xterm").click();
  await page.keyboard.type(`${line}\n`);
  await page.waitForFunction((text) => document.querySelector(".xterm").textContent.includes(text), answer);
}

// A run that holds a sandbox with these settings until it is cancelled, and its lease.
async function held(server, config, line) {
  const company = await server.company();
  const environment = await server.call("POST", `/api/companies/${company}/environments`, { name: `held ${Date.now()}`, driver: "sandbox", config: { provider: "linux", ...config } });
  const run = await server.call("POST", `/api/companies/${company}/runs`, { command: "sh", args: ["-c", line], environmentId: environment.id });
  for (;;) {
    const view = await server.call("GET", `/api/heartbeat-runs/${run.id}?wait=30`);
    if (view.status === "running") return { lease: view.environmentLease.id, run: run.id, environment: environment.id };
    assert.ok(["queued", "starting"].includes(view.status), `the run is ${view.status}: ${view.error}`);
  }
}

async function letGo(server, { run, environment }) {
  await server.call("POST", `/api/heartbeat-runs/${run}/cancel`);
  await server.ended(run);
  await server.call("DELETE", `/api/environments/${environment}`).catch(() => undefined);
}

test("sandboxes.a setup session is started, worked in, captured and used, and its template is deleted", visiting(async (page, visit, server) => {
  const sandbox = await sandboxOf(server);
  await visit.goto("/templates");
  await page.getByText("No template yet").waitFor();
  await visit.seen("templates-empty");

  await visit.goto(`/environments/${sandbox.id}`);
  await page.getByRole("tab", { name: "Custom image" }).click();
  await page.getByText("The image of the configuration").waitFor();
  await page.getByRole("button", { name: "Start a setup session" }).click();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel it" }).click();
  await page.getByText("cancelled").first().waitFor();

  await page.getByRole("button", { name: "Start a setup session" }).click();
  await typed(page, "echo prepared > tool; echo $((40+2))-done", "42-done");
  await visit.seen("setup-session");
  await page.getByRole("button", { name: "Capture it" }).click();
  await page.getByText("promoted").first().waitFor({ timeout: 30_000 });
  const run = await server.run("cat tool", { environmentId: sandbox.id });
  assert.match(run.stdoutExcerpt, /prepared/);
  await visit.seen("custom-image");

  const [template] = await server.call("GET", `/api/companies/${await server.company()}/templates`);
  await server.call("PATCH", `/api/environments/${sandbox.id}`, { config: { template: template.name } });
  await page.getByText("has changed since it was captured").waitFor();
  await page.getByRole("button", { name: "Link it again" }).click();
  await page.getByRole("dialog").getByText("Template", { exact: true }).waitFor();
  await visit.accessible("link a template again");
  await page.getByRole("button", { name: "Link it", exact: true }).click();
  await page.getByText("the one it was captured with").waitFor();
  await server.call("PATCH", `/api/environments/${sandbox.id}`, { config: { template: null } });

  await page.getByRole("link", { name: "Templates" }).click();
  await page.getByText("every sandbox of Sandbox").waitFor();
  await visit.seen("templates");
  await page.getByRole("button", { name: `Delete ${template.name}` }).click();
  await page.getByText("Sandboxes of Sandbox start from it").waitFor();
  await page.getByLabel(/Type the name/).fill(template.name);
  await page.getByRole("button", { name: "Delete it" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByRole("button", { name: "Keep it" }).click();

  await visit.goto(`/environments/${sandbox.id}`);
  await page.getByRole("tab", { name: "Custom image" }).click();
  await page.getByRole("button", { name: "Use the plain image" }).click();
  await page.getByRole("button", { name: "Use it" }).click();
  await page.getByText("The image of the configuration").waitFor();
  await visit.goto("/templates");
  await page.getByRole("button", { name: `Delete ${template.name}` }).click();
  await page.getByLabel(/Type the name/).fill(template.name);
  await page.getByRole("button", { name: "Delete it" }).click();
  await page.getByText("No template yet").waitFor();
}));

test("sandboxes.a port of a live sandbox is opened in a tab of its own", visiting(async (page, visit, server) => {
  await sandboxOf(server);
  const place = await held(server, {}, "echo seen > seen-inside.txt; exec python3 -m http.server --bind 127.0.0.1 8123");
  const url = `/api/environment-leases/${place.lease}/ports/8123/`;
  // The program inside may not listen yet.
  await until("the port answers", async () => (await fetch(server.url + url)).status === 200);
  await visit.goto(`/leases/${place.lease}`);
  const listening = page.getByRole("list", { name: "Listening ports" });
  await listening.getByRole("link", { name: "8123" }).waitFor();
  // Berth's own ports, 3128 and 3129, are not ports of the programs there.
  assert.deepEqual(await listening.getByRole("link").allTextContents(), ["8123"]);
  // A visitor that only looks has changed nothing: no command ran, and nothing was recorded.
  const done = await server.call("GET", `/api/companies/${await server.company()}/activity`);
  assert.deepEqual(done.filter(({ action, entityId }) => action === "environment.lease_exec" && entityId === place.lease), []);
  const { isolation } = await server.call("GET", `/api/environment-leases/${place.lease}`);
  await page.getByText(isolation.level, { exact: true }).waitFor();
  await page.getByText(`${isolation.features.length} measures`).waitFor();
  await page.getByLabel("Port", { exact: true }).fill("70000");
  await page.getByText("Write a number from 1 to 65535.").waitFor();
  await page.getByLabel("Port", { exact: true }).fill("8123");
  const [opened] = await Promise.all([visit.context.waitForEvent("page"), page.getByRole("button", { name: "Open", exact: true }).click()]);
  await opened.getByText("seen-inside.txt").waitFor();
  assert.equal(await opened.evaluate(() => window.opener), null);
  await opened.close();
  await page.getByRole("list", { name: "Opened ports" }).getByRole("link").waitFor();
  await visit.seen("lease-ports");
  await letGo(server, place);
}));

test("sandboxes.what the isolation of a lease lacks is told with its reason and remedy", visiting(async (page, visit, server) => {
  await sandboxOf(server);
  const place = await held(server, { allow: ["ptrace"] }, "exec sleep 300");
  const { isolation } = await server.call("GET", `/api/environment-leases/${place.lease}`);
  assert.ok(isolation.missing.length > 0, "a wall that was taken away is missing");
  await visit.goto(`/leases/${place.lease}`);
  const missing = page.getByRole("list", { name: "What is missing" });
  await missing.waitFor();
  const told = await missing.textContent();
  for (const { feature, reason, remedy } of isolation.missing) {
    for (const text of [feature, reason, remedy]) assert.ok(told.includes(text), `${text} is not in: ${told}`);
    assert.equal(told.split(`Remedy: ${remedy}`).length, remedy ? 2 : 1, "each remedy is told once");
  }
  await visit.seen("lease-isolation");
  await letGo(server, place);
}));

test("sandboxes.a frozen sandbox is shown as one", visiting(async (page, visit, server) => {
  await sandboxOf(server);
  needsFreezer();
  const place = await held(server, {}, "exec sleep 300");
  const lease = `/api/environment-leases/${place.lease}`;
  await visit.goto(`/leases/${place.lease}`);
  await page.getByRole("heading", { name: "What is held" }).waitFor();
  assert.equal(await page.getByText("frozen", { exact: true }).count(), 0);
  await server.call("POST", `${lease}/freeze`);
  await page.getByText("frozen", { exact: true }).waitFor();
  await page.getByText("It is frozen").waitFor();
  await visit.goto("/leases");
  await page.getByText("frozen", { exact: true }).first().waitFor();
  await visit.seen("leases-frozen");
  await server.call("POST", `${lease}/thaw`);
  await letGo(server, place);
}));

test("sandboxes.usage that nobody counts is not shown as nothing", visiting(async (page, visit, server) => {
  const local = await environmentNamed(server, "Local");
  const company = await server.company();
  const run = await server.call("POST", `/api/companies/${company}/runs`, { command: "sleep", args: ["300"], environmentId: local.id });
  await until("it runs", async () => (await server.call("GET", `/api/heartbeat-runs/${run.id}?wait=5`)).status === "running");
  const { environmentLease } = await server.call("GET", `/api/heartbeat-runs/${run.id}`);
  const used = await server.call("GET", `/api/environment-leases/${environmentLease.id}/usage`);
  assert.equal(used.memoryBytesPeak, 0, "a place without control groups");
  await visit.goto(`/leases/${environmentLease.id}`);
  await page.getByText("Usage", { exact: true }).click();
  await page.getByText("Most memory").waitFor();
  assert.equal(await page.getByText("not counted here").count(), 3);
  assert.equal(await page.getByText("never", { exact: true }).count(), 0);
  await server.call("POST", `/api/heartbeat-runs/${run.id}/cancel`);
  await server.ended(run.id);
}));

test("sandboxes.what a live sandbox may reach is shown and changed, with what was decided", visiting(async (page, visit, server) => {
  await sandboxOf(server);
  const place = await held(server, { egress: { allow: ["203.0.113.0/24"] } }, "exec sleep 300");
  const lease = `/api/environment-leases/${place.lease}`;
  const ask = "import http.client as h\nc = h.HTTPConnection('127.0.0.1', 3128, timeout=10)\nc.request('GET', 'http://198.51.100.7/x')\nprint(c.getresponse().status)";
  assert.match((await server.call("POST", `${lease}/exec`, { argv: ["python3", "-c", ask] })).stdoutText, /403/);
  await until("a decision is told", async () => (await server.call("GET", `${lease}/egress`)).entries.length > 0);
  await visit.goto(`/leases/${place.lease}`);
  await page.getByText("Network", { exact: true }).click();
  assert.equal(await page.getByLabel("May reach").inputValue(), "203.0.113.0/24");
  await page.getByLabel("May reach").fill("10.0.0.1/8");
  await page.getByRole("button", { name: "Apply at once" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("May reach").fill("192.0.2.0/24");
  await page.getByRole("button", { name: "Apply at once" }).click();
  // The button is also disabled during the request, so the test asks the server, not the button.
  await until("the rules apply", async () => (await server.call("GET", `${lease}/egress`)).policy.allow[0] === "192.0.2.0/24");
  await page.waitForFunction(() => [...document.querySelectorAll("button")].some((each) => each.textContent === "Apply at once" && each.disabled));
  await page.getByText("denied", { exact: true }).first().waitFor();
  await page.getByText(/198\.51\.100\.7/).first().waitFor();
  await server.call("POST", `${lease}/exec`, { argv: ["python3", "-c", ask.replace("198.51.100.7", "198.51.100.8")] });
  await page.getByText(/198\.51\.100\.8/).first().waitFor();
  await visit.seen("lease-network");
  await letGo(server, place);
}));
