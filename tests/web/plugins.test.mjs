import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Skip, test } from "./lib/runner.mjs";
import { environmentNamed, until, visiting } from "./lib/shared.mjs";

test("plugins.one is installed, looked at, restarted, stopped, started and uninstalled", visiting(async (page, visit, server) => {
  const folder = join(dirname(process.env.BERTH), "plugins", "fake");
  if (!existsSync(join(folder, "manifest.json"))) throw new Skip(`${folder} is not built`);
  await visit.goto("/plugins");
  await page.getByText("No plugin yet").waitFor();
  await page.getByRole("button", { name: "Install a plugin" }).click();
  await page.getByLabel("Package").fill(folder);
  await page.getByRole("button", { name: "Install", exact: true }).click();
  await page.getByText("ready").waitFor({ timeout: 30_000 });
  await visit.seen("plugins");
  // A new environment begins with this machine's sandboxes, wherever a plugin is in the alphabet.
  await visit.goto("/environments/new");
  await page.getByLabel("Memory (MiB)").waitFor();
  await visit.goto("/plugins");
  await page.getByText("ready").waitFor();
  const key = await page.locator("td p").first().textContent();
  await page.locator("td a").first().click();
  await page.getByText("Health and worker").click();
  await page.getByText("running", { exact: true }).waitFor();
  await page.getByText("Logs", { exact: true }).click();
  await visit.seen("plugin");
  const worker = async () => (await server.call("GET", `/api/plugins/${key}/health`)).worker?.pid;
  const before = await worker();
  await page.getByRole("button", { name: "Restart" }).click();
  await until("another worker runs", async () => ![undefined, null, before].includes(await worker()));
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("button", { name: "Disable" }).waitFor();
  await page.getByRole("button", { name: "Uninstall" }).click();
  assert.ok(await page.getByRole("button", { name: "Uninstall it" }).isDisabled());
  await visit.accessible("uninstall a plugin");
  await page.getByLabel(/Type the name/).fill(key);
  await page.getByRole("button", { name: "Uninstall it" }).click();
  await page.getByText("No plugin yet").waitFor();
}));

test("plugins.the form of a provider comes from its schema, and a pasted secret is sealed", visiting(async (page, visit, server) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-web-plugin-"));
  chmodSync(folder, 0o755);
  const worker = readFileSync(new URL("../e2e/contract_provider.py", import.meta.url), "utf8");
  writeFileSync(join(folder, "worker"), worker.replaceAll("@STATE@", "/tmp"), { mode: 0o755 });
  writeFileSync(join(folder, "manifest.json"), JSON.stringify({
    id: "test.contract", apiVersion: 1, version: "1.0.0", displayName: "Boxes", description: "Folders as sandboxes",
    author: "Berth", categories: ["automation"], capabilities: ["environment.drivers.register"],
    entrypoints: { worker: "./worker" },
    environmentDrivers: [{ driverKey: "boxes", kind: "sandbox_provider", displayName: "Boxes", configSchema: {
      type: "object", required: ["region"], properties: {
        region: { type: "string", title: "Region", enum: ["eu", "us"] },
        apiKey: { type: "string", title: "API key", format: "secret-ref" } } } }] }));
  const installed = await server.call("POST", "/api/plugins/install", { packageName: folder, isLocalPath: true });
  assert.equal(installed.status, "ready", installed.lastError);
  try {
    await visit.goto("/environments/new");
    await page.getByLabel("Name").first().fill("From a schema");
    await page.getByLabel("Provider", { exact: true }).selectOption("boxes");
    await page.getByLabel("Region").selectOption("eu");
    await page.getByLabel("API key", { exact: true }).selectOption("paste");
    await page.getByLabel("Value of API key").fill("sk-pasted-into-a-form");
    await visit.seen("environment-of-a-plugin");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "From a schema" }).waitFor();
    const made = await environmentNamed(server, "From a schema");
    assert.equal(made.config.region, "eu");
    assert.ok(!JSON.stringify(made).includes("sk-pasted"), "the value is in the row");
    assert.match(JSON.stringify(made.config.apiKey), /[0-9a-f]{8}-[0-9a-f]{4}/);
    await server.call("DELETE", `/api/environments/${made.id}`);
  } finally {
    await server.call("DELETE", "/api/plugins/test.contract?purge=true");
    rmSync(folder, { recursive: true });
  }
}));
