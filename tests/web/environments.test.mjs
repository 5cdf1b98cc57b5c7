import assert from "node:assert/strict";
import { test } from "./lib/runner.mjs";
import { environmentNamed, visiting } from "./lib/shared.mjs";
import { openSshHost } from "./lib/ssh-host.mjs";

test("environments.the list says what each is, and a test shows its steps with times", visiting(async (page, visit, server) => {
  const sandbox = await environmentNamed(server, "Sandbox");
  const tested = sandbox && (await server.call("POST", `/api/environments/${sandbox.id}/probe`));
  await visit.goto("/environments");
  await page.getByRole("link", { name: "Local", exact: true }).waitFor();
  await page.getByRole("button", { name: "Test Local" }).click();
  await page.getByText("works", { exact: true }).first().waitFor();
  await page.getByText(/\d+(\.\d+)? (ms|s) in all/).waitFor();
  if (tested?.ok) {
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "Sandbox", exact: true }) });
    await row.getByText(tested.details.isolation.level, { exact: true }).waitFor();
    await row.getByText("as tested").waitFor();
  }
  await visit.seen("environments");
}));

test("environments.one is made from the schema's form, tested as a draft, edited and deleted", visiting(async (page, visit, server) => {
  await visit.goto("/environments/new");
  assert.ok(!(await page.locator("select").allTextContents()).some((text) => /fake/i.test(text)), "fake is offered");
  await page.getByLabel("Name").first().fill("Small box");
  await page.getByLabel("Memory (MiB)").fill("1");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("[id$=memoryMb__about]").getByText("must be at least 16").waitFor();
  await page.getByLabel("Memory (MiB)").fill("256");
  await page.getByLabel("Timeout", { exact: true }).fill("5 min");
  await page.getByRole("button", { name: "Add a variable" }).click();
  await page.getByLabel("Name of the variable").fill("GREETING");
  await page.getByLabel("Value of GREETING").fill("hello");
  await page.getByText("More options").click();
  await page.getByLabel("Open files").fill("512");
  await page.getByRole("button", { name: "Test this draft" }).click();
  // The server creates the environment Sandbox if its machine can create sandboxes.
  const works = Boolean(await environmentNamed(server, "Sandbox"));
  await page.getByRole("status").getByText(works ? "works" : "does not work", { exact: true }).waitFor();
  await visit.seen("environment-editor");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "Small box" }).waitFor();
  await page.getByText("256 MiB").waitFor();
  const made = await environmentNamed(server, "Small box");
  assert.equal(made.config.memoryMb, 256);
  assert.equal(made.config.timeoutMs, 300_000);
  assert.equal(made.config.openFiles, 512);
  assert.equal(made.envVars.GREETING.value, "hello");
  await visit.seen("environment");

  await page.getByRole("link", { name: "Edit" }).click();
  await page.getByLabel("Description").fill("a little place");
  assert.equal(await page.getByLabel("Timeout", { exact: true }).inputValue(), "5 min");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("a little place").waitFor();

  await page.getByRole("button", { name: "Delete" }).click();
  const remove = page.getByRole("button", { name: "Delete it" });
  await page.getByText("This cannot be undone").waitFor();
  assert.ok(await remove.isDisabled());
  await visit.seen("environment-delete");
  await page.getByLabel(/Type the name/).fill("Small box");
  await remove.click();
  await page.waitForURL((url) => url.pathname === "/environments");
  assert.equal(await environmentNamed(server, "Small box"), undefined);
}));

test("environments.what the server refuses is shown at its field", visiting(async (page, visit) => {
  await visit.goto("/environments/new");
  await page.getByLabel("Name").first().fill("Bad host");
  // The schema accepts this folder; the rule that refuses it is the server's alone.
  await page.getByText("More options").click();
  await page.getByLabel("Working folder").fill("/proc/x");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("[id$=workdir__about]").getByText("lies in /proc").waitFor();
  await page.getByLabel("Kind").selectOption("ssh");
  await page.getByLabel("Host", { exact: false }).first().fill("-oProxyCommand=x");
  await page.getByLabel("User").fill("me");
  await page.getByLabel("Folder for work").fill("/srv/work");
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator("[id$=host__about]").getByText("SSH host must not start with").waitFor();
  await visit.seen("environment-editor-refused");
}));

test("environments.a host over ssh is made with a pasted key, tested, and runs a command", visiting(async (page, visit, server) => {
  const host = await openSshHost();
  try {
    await visit.goto("/environments/new");
    await page.getByLabel("Name").first().fill("Far away");
    await page.getByLabel("Kind").selectOption("ssh");
    await page.getByLabel("Host *").fill(host.config.host);
    await page.getByLabel("Port").fill(String(host.config.port));
    await page.getByLabel("User").fill(host.config.username);
    await page.getByLabel("Folder for work").fill(host.config.remoteWorkspacePath);
    await page.getByLabel("Private key", { exact: true }).selectOption("paste");
    await page.getByLabel("Value of Private key").fill(host.config.privateKey);
    await page.getByLabel("Known hosts").fill(host.config.knownHosts);
    await page.getByRole("button", { name: "Test this draft" }).click();
    await page.getByText("works", { exact: true }).waitFor({ timeout: 60_000 });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Far away" }).waitFor();
    await page.getByRole("button", { name: "Test" }).click();
    await page.getByText("works", { exact: true }).waitFor({ timeout: 60_000 });
    await visit.seen("environment-ssh");
    assert.ok(!(await page.content()).includes("PRIVATE KEY"));
    await page.getByRole("button", { name: "Start a run here" }).click();
    await page.getByRole("textbox", { name: "Command", exact: true }).fill("echo over-$((1+1))-ssh");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.getByRole("log").getByText("over-2-ssh", { exact: true }).waitFor({ timeout: 60_000 });
    await page.getByText("succeeded").first().waitFor();
    const made = await environmentNamed(server, "Far away");
    await server.call("DELETE", `/api/environments/${made.id}`);
  } finally {
    await host.close();
  }
}));

test("environments.deleting Local is explained and not offered", visiting(async (page, visit, server) => {
  const local = await environmentNamed(server, "Local");
  await visit.goto(`/environments/${local.id}`);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("It cannot be deleted now").waitFor();
  assert.ok(await page.getByRole("button", { name: "Delete it" }).isDisabled());
}));

test("environments.runs and leases of one are a tab away", visiting(async (page, visit, server) => {
  const local = await environmentNamed(server, "Local");
  await server.run("echo in-local", { environmentId: local.id });
  await visit.goto(`/environments/${local.id}`);
  await page.getByRole("tab", { name: "Runs" }).click();
  await page.getByRole("link", { name: /in-local/ }).first().waitFor();
  await page.getByRole("tab", { name: "Leases" }).click();
  await page.getByText("released").first().waitFor();
}));
