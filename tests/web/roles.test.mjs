import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Visit } from "./lib/browser.mjs";
import { test } from "./lib/runner.mjs";
import { Server } from "./lib/server.mjs";

async function signIn(visit, key) {
  await visit.page.getByLabel("Key").fill(key);
  await visit.page.getByRole("button", { name: "Sign in" }).click();
}

// One server with keys, visited without a key, and as administrator, operator and viewer.
test("roles.each role signs in, sees what it may do, and signs out", async () => {
  const server = await new Server(["--mode", "authenticated"]).start();
  const visit = await Visit.open(server);
  const { page } = visit;
  try {
    const admin = readFileSync(join(server.home, "admin.token"), "utf8").trim();
    const company = await server.company(admin);
    const keyOf = async (role, expiresAt) => (await server.call("POST", `/api/companies/${company}/tokens`, { name: role, role, expiresAt }, admin)).key;

    await visit.goto("/");
    await visit.seen("sign-in");
    await signIn(visit, "berth_wrong_key_wrong_key");
    await page.getByText("This key is not valid on this server.").waitFor();

    await signIn(visit, admin);
    await page.getByRole("heading", { name: "Start" }).waitFor();
    const cookies = await visit.context.cookies();
    const cookie = cookies.find((each) => each.name === "berth_session");
    assert.ok(cookie.httpOnly && cookie.sameSite === "Strict");
    assert.equal(await page.evaluate(() => document.cookie), "");
    await visit.goto("/settings");
    await page.getByRole("button", { name: "Make a key" }).waitFor();
    await signOut(page);

    await signIn(visit, await keyOf("operator"));
    await page.getByRole("heading", { name: "Start" }).waitFor();
    await page.getByRole("button", { name: /Run a command/ }).click();
    await page.getByRole("log").getByText("Hello from Linux").waitFor();
    await visit.goto("/settings");
    await page.getByText("Signed in as").waitFor();
    assert.equal(await page.getByRole("button", { name: "Make a key" }).count(), 0);
    await signOut(page);

    await signIn(visit, await keyOf("viewer"));
    await page.getByRole("heading", { name: "Start" }).waitFor();
    assert.equal(await page.getByRole("button", { name: /Run a command/ }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "Secrets" }).count(), 0);
    await visit.goto("/environments");
    await page.getByRole("link", { name: "Local", exact: true }).waitFor();
    assert.equal(await page.getByRole("button", { name: /^Test/ }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "New environment" }).count(), 0);
    await visit.seen("environments-viewer");
    await signOut(page);

    const key = await keyOf("operator");
    await signIn(visit, key);
    await page.getByRole("heading", { name: "Start" }).waitFor();
    const tokens = await server.call("GET", `/api/companies/${company}/tokens`, undefined, admin);
    for (const token of tokens) if (!token.revokedAt) await server.call("DELETE", `/api/tokens/${token.id}`, undefined, admin);
    // The page notices by itself.
    await page.getByRole("heading", { name: "Sign in to Berth" }).waitFor();
  } catch (error) {
    await visit.picture("failed-roles");
    throw error;
  } finally {
    await visit.close().finally(() => server.end());
  }
});

async function signOut(page) {
  await page.getByRole("button", { name: /Default|admin|operator|viewer/ }).last().click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to Berth" }).waitFor();
}
