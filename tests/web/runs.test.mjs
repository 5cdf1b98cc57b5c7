import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "./lib/runner.mjs";
import { environmentNamed, visiting } from "./lib/shared.mjs";
import { cpuOf, frozenShare, scrollThrough, watchFrames } from "./lib/work.mjs";

test("runs.the list shows runs, and filters and search narrow it", visiting(async (page, visit, server) => {
  await server.run("echo needle-in-a-command");
  await server.run("exit 3");
  await visit.goto("/runs");
  await page.getByRole("link", { name: /needle-in-a-command/ }).first().waitFor();
  await page.getByRole("combobox", { name: "State" }).selectOption("failed");
  await page.getByRole("link", { name: /needle-in-a-command/ }).first().waitFor({ state: "detached" });
  await page.getByRole("link", { name: /exit 3/ }).first().waitFor();
  await page.getByRole("combobox", { name: "State" }).selectOption("");
  await page.getByRole("searchbox", { name: /Search commands/ }).fill("NEEDLE-in");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll("[role=listitem]").length > 0);
  await page.waitForFunction(() => [...document.querySelectorAll("[role=listitem]")].every((row) => row.textContent.includes("needle")));
  await page.getByRole("searchbox", { name: /Search commands/ }).fill("no-such-thing-at-all");
  await page.keyboard.press("Enter");
  await page.getByText("No run fits").waitFor();
  await visit.seen("runs-empty");
}));

test("runs.a run is started from the form and its end is seen without a reload", visiting(async (page, visit) => {
  await visit.goto("/runs");
  await page.getByRole("button", { name: "Start a run" }).click();
  await visit.seen("runs-start-form");
  await page.getByRole("textbox", { name: "Command", exact: true }).fill("echo out; echo err >&2; printf '\\033[31mred\\033[0m\\n'");
  await page.getByLabel("Environment").last().selectOption({ label: "Local (local)" });
  await page.getByLabel("Time limit").fill("5 min");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByText("succeeded").first().waitFor();
  const log = page.getByRole("log");
  await log.getByText("red", { exact: true }).waitFor();
  assert.match(await log.getByText("red", { exact: true }).getAttribute("class"), /ansi-f1/);
  await log.locator("[data-stream=stderr]").filter({ hasText: "err" }).waitFor();
  await page.getByText("Time limit").waitFor();
  await page.getByText("5 min", { exact: true }).waitFor();
  await page.getByText("Why there").waitFor();
  await visit.seen("run");
}));

test("runs.output comes as it is said, and cancel ends the run", visiting(async (page, visit, server) => {
  const company = await server.company();
  const run = await server.call("POST", `/api/companies/${company}/runs`, { command: "sh", args: ["-c", "echo first; sleep 60; echo never"] });
  await visit.goto(`/runs/${run.id}`);
  await page.getByRole("log").getByText("first").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("cancelled").first().waitFor();
  await page.getByRole("button", { name: "Run again" }).waitFor();
}));

test("runs.run again starts another run", visiting(async (page, visit, server) => {
  const run = await server.run("echo again");
  await visit.goto(`/runs/${run.id}`);
  await page.getByRole("button", { name: "Run again" }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/runs/") && !url.pathname.includes(run.id));
  await page.getByText("Retry of").waitFor();
}));

test("runs.search, streams, wrap and download work on the output", visiting(async (page, visit, server) => {
  const run = await server.run("seq 1 5000; echo on-stderr >&2");
  await visit.goto(`/runs/${run.id}`);
  await page.getByText("5,001 lines").waitFor();
  await page.getByRole("searchbox", { name: "Search the output" }).fill("2718");
  await page.getByText("1 line", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("log").getByText("2718", { exact: true }).last().waitFor();
  await page.getByRole("combobox", { name: "Streams" }).selectOption("stderr");
  await page.getByRole("log").getByText("on-stderr").waitFor();
  await page.getByRole("combobox", { name: "Streams" }).selectOption("all");
  await page.getByLabel("Wrap").check();
  await page.getByRole("button", { name: "Jump to the end" }).click();
  await page.getByRole("log").getByText("5000", { exact: true }).last().waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  const text = readFileSync(await download.path(), "utf8");
  assert.equal(text.split("\n").filter((line) => /^\d+$/.test(line)).length, 5000);
}));

// Opens a finished run with that much output, and scrolls through all of it.
async function openOutput(visit, server, bytes, shownSize) {
  const run = await server.run(`yes 'a line of output that is about sixty characters long, sort of' | head -c ${bytes - 10}; echo; echo the-last`);
  const { page } = visit;
  const cpu = await cpuOf(visit);
  const loading = await cpu(async () => {
    await visit.goto(`/runs/${run.id}`);
    await page.getByText(new RegExp(`lines, ${shownSize}$`)).waitFor({ timeout: 120_000 });
    return frozenShare(page);
  });
  await page.getByRole("log").getByText("the-last", { exact: true }).waitFor();
  const scrolling = await cpu(() => scrollThrough(page, "[role=log]", 40));
  return { loading: loading.seconds, frozen: loading.result, scrolling: scrolling.seconds };
}

test("runs.a hundred megabytes of output leave the page alive", visiting(async (page, visit, server) => {
  await watchFrames(page);
  const small = await openOutput(visit, server, 10_000_000, "9\\.5 MiB");
  const large = await openOutput(visit, server, 100_000_000, "95 MiB");
  const elements = await page.locator("[role=log] div").count();
  assert.ok(elements < 500, `${elements} elements for the log`);
  assert.ok(large.loading < 10 * small.loading * 3, `${large.loading} s of CPU time to load 100 MB, ${small.loading} s for 10 MB`);
  assert.ok(large.frozen < 1 / 4, `one frame took ${Math.round(large.frozen * 100)} % of the time that 100 MB took`);
  assert.ok(large.scrolling < small.scrolling * 5, `${large.scrolling} s of CPU time to scroll through 100 MB, ${small.scrolling} s for 10 MB`);
}));

test("runs.a terminal takes what is typed", visiting(async (page, visit, server) => {
  const company = await server.company();
  const place = await environmentNamed(server, "Local");
  const run = await server.call("POST", `/api/companies/${company}/runs`, { command: "sh", environmentId: place.id, stdinOpen: true, terminal: { columns: 80, rows: 24 } });
  await visit.goto(`/runs/${run.id}/terminal`);
  await page.locator(".xterm").waitFor();
  await page.getByText("running").first().waitFor();
  await page.locator(".xterm").click();
  await page.keyboard.type("echo $((6*7))-answer\n");
  await page.waitForFunction(() => document.querySelector(".xterm").textContent.includes("42-answer"));
  await visit.seen("terminal");
  await page.keyboard.type("exit\n");
  await page.getByText("The run is over.").waitFor();
}));
