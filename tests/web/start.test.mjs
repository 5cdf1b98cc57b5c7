import assert from "node:assert/strict";
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
