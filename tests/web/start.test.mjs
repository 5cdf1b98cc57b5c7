import assert from "node:assert/strict";
import { needsSandboxes } from "./lib/machine.mjs";
import { test } from "./lib/runner.mjs";
import { visiting } from "./lib/shared.mjs";

test("start.a newcomer runs a command with one click and sees its output and phases", visiting(async (page, visit) => {
  await visit.goto("/");
  await page.getByRole("button", { name: /Run a command/ }).click();
  await page.getByRole("log").getByText("Hello from Linux").waitFor();
  const phases = await page.getByRole("img", { name: /Phases/ }).getAttribute("aria-label");
  assert.match(phases, /Execute \d+(\.\d+)? (ms|s)/);
  await page.getByText("succeeded").waitFor();
  await visit.seen("start");
}));

test("start.the sandbox of Berth is offered before one that somebody made later", visiting(async (page, visit, server) => {
  needsSandboxes();
  const newer = await server.call("POST", `/api/companies/${await server.company()}/environments`, { name: `newer ${Date.now()}`, driver: "sandbox", config: { provider: "linux" } });
  await visit.goto("/");
  await page.getByText("In Sandbox: a fresh sandbox").waitFor();
  await server.call("DELETE", `/api/environments/${newer.id}`);
}));

test("start.a run that fails before it says anything tells why and what to do", visiting(async (page, visit) => {
  await page.route("**/api/companies/*/runs", (route) => {
    const { environmentId } = route.request().postDataJSON();
    return route.continue({ postData: JSON.stringify({ command: "no-such-program", environmentId }) });
  });
  await visit.goto("/");
  await page.getByRole("button", { name: /Run a command/ }).click();
  const why = page.getByRole("alert");
  await why.getByText("no-such-program").waitFor();
  await why.getByText("command_not_found").waitFor();
  await visit.accessible("a first run that failed");
}));

test("start.what doctor found is listed", visiting(async (page, visit) => {
  await visit.goto("/");
  await page.getByText(/checks? without a problem/).click();
  await page.getByText("kernel", { exact: false }).first().waitFor();
}));

test("start.an address that is no page says so", visiting(async (page, visit) => {
  await visit.goto("/nowhere/at/all");
  await page.getByRole("heading", { name: "No such page" }).waitFor();
  await visit.seen("not-found");
}));
