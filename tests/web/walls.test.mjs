import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Visit } from "./lib/browser.mjs";
import { test } from "./lib/runner.mjs";
import { Server } from "./lib/server.mjs";
import { until, visiting } from "./lib/shared.mjs";

test("walls.an administrator sees each wall with its state, reason and remedy", visiting(async (page, visit, server) => {
  const walls = await server.call("GET", "/api/instance/walls");
  await visit.goto("/settings");
  await page.getByRole("link", { name: "show the walls" }).click();
  await page.getByRole("heading", { name: "Walls", level: 1 }).waitFor();
  await page.getByRole("heading", { name: "API callers" }).waitFor();
  const cards = page.locator("main li");
  assert.equal(await cards.count(), walls.length);
  for (const wall of walls) {
    const card = cards.filter({ has: page.getByRole("heading", { name: wall.title, exact: true }) });
    await card.getByText(wall.state, { exact: true }).waitFor();
    const said = await card.textContent();
    assert.ok(said.includes(wall.reason), said);
    assert.equal(said.includes("Remedy:"), wall.state !== "stands", said);
  }
  // The server of these tests asks the kernel who is calling.
  const callers = cards.filter({ has: page.getByRole("heading", { name: "API callers" }) });
  assert.match(await callers.textContent(), /kernel/);
  await visit.seen("walls");
}));

test("walls.an administrator sees and changes the quota of the company", visiting(async (page, visit, server) => {
  const company = await server.company();
  await visit.goto("/settings");
  const most = page.getByLabel("At most: Sandboxes", { exact: true });
  await most.fill("7");
  await most.blur();
  const usage = () => server.call("GET", `/api/companies/${company}/usage`);
  await until("the quota is saved", async () => (await usage()).sandboxesMax === 7);
  await server.call("PATCH", `/api/companies/${company}/quota`, { sandboxesMax: null });
  await visit.seen("quota");
}));

test("walls.an operator of a company does not see them", async () => {
  const server = await new Server(["--mode", "authenticated"]).start();
  const visit = await Visit.open(server);
  const { page } = visit;
  try {
    const admin = readFileSync(join(server.home, "admin.token"), "utf8").trim();
    const company = await server.company(admin);
    const made = await server.call("POST", `/api/companies/${company}/tokens`, { name: "o", role: "admin" }, admin);
    await visit.goto("/");
    await page.getByLabel("Key").fill(made.key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Start" }).waitFor();
    await visit.goto("/settings");
    await page.getByText("Signed in as").waitFor();
    assert.equal(await page.getByRole("link", { name: "show the walls" }).count(), 0);
    await visit.goto("/settings/walls");
    await page.getByText("Only an instance administrator sees the walls").waitFor();
    assert.equal(await page.getByText("API callers").count(), 0);
  } finally {
    await visit.close().finally(() => server.end());
  }
});
