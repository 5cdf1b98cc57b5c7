import assert from "node:assert/strict";
import { Visit } from "./lib/browser.mjs";
import { serverWithRuns } from "./lib/many-runs.mjs";
import { test } from "./lib/runner.mjs";
import { cpuOf, scrollThrough } from "./lib/work.mjs";

const count = 100_000;
const firstRows = 60;
const moreRows = 500;
const farRows = 6000;
const rowsMax = 100;
const limitMs = 60_000;

const lists = (visit) => visit.asked("/heartbeat-runs");
const newest = (page, line) => page.getByRole("link", { name: line, exact: true });

async function filterBy(page, state) {
  await page.getByRole("combobox", { name: "State" }).selectOption(state);
}

async function searchFor(page, text) {
  await page.getByRole("searchbox", { name: /Search commands/ }).fill(text);
  await page.keyboard.press("Enter");
}

// Scrolls to the end of the loaded part repeatedly, until the list has this many rows.
async function scrollTo(page, rows) {
  return page.evaluate(async ({ rows, limitMs }) => {
    const box = document.querySelector("[role=list][aria-label=Runs]");
    const loaded = () => Number(box.querySelector("[role=listitem]").getAttribute("aria-setsize"));
    let most = 0;
    const ends = performance.now() + limitMs;
    while (loaded() < rows && performance.now() < ends) {
      box.scrollTop = box.scrollHeight;
      await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
      most = Math.max(most, box.querySelectorAll("[role=listitem]").length);
    }
    return { most, loaded: loaded() };
  }, { rows, limitMs });
}

// Scrolls to the end of the list and remains there: the next page is requested, and its response
// held back.
async function standAtTheEnd(page) {
  const held = page.waitForRequest((request) => request.url().includes("after="));
  await page.route(/heartbeat-runs.*after=/, () => undefined, { times: 1 });
  await page.getByRole("list", { name: "Runs" }).evaluate((box) => (box.scrollTop = box.scrollHeight));
  return held;
}

// The page gets the response to this address before its next frame.
async function answerAtOnce(page, url) {
  await page.evaluate(async (url) => {
    const ask = window.fetch;
    const { headers, text } = await ask(url).then(async (answer) => ({ headers: answer.headers, text: await answer.text() }));
    window.fetch = (input, ...more) => (new URL(input, location.href).href === url ? Promise.resolve(new Response(text, { headers })) : ask(input, ...more));
  }, url);
}

test("runs.a list of 100,000 runs opens, scrolls, filters and searches with few rows in the page and few requests", async () => {
  const server = await serverWithRuns(count);
  const visit = await Visit.open(server);
  const { page } = visit;
  try {
    await visit.withoutEvents();
    await visit.goto("/runs");
    await newest(page, "echo the-first").waitFor();
    assert.equal(lists(visit).length, 1, "requests to open the list");

    const cpu = await cpuOf(visit);
    const scroll = () => scrollThrough(page, "[role=list][aria-label=Runs]", 40);
    await scrollTo(page, firstRows + moreRows);
    const few = await cpu(scroll);
    const scrolled = await scrollTo(page, farRows);
    assert.ok(scrolled.loaded >= farRows, `${scrolled.loaded} rows after a minute of scrolling`);
    assert.ok(scrolled.most <= rowsMax, `${scrolled.most} rows in the page`);
    const many = await cpu(scroll);
    assert.ok(many.seconds < few.seconds * 3, `${many.seconds} s of CPU time to scroll through ${farRows} rows, ${few.seconds} s for ${firstRows + moreRows}`);
    assert.ok(lists(visit).length <= farRows / moreRows + 2, `${lists(visit).length} requests for ${farRows} rows`);
    await visit.seen("runs-many");

    const before = lists(visit).length;
    await searchFor(page, "copy-4242");
    await newest(page, "echo copy-4242").waitFor();
    await page.getByText("11 runs", { exact: true }).waitFor();
    assert.equal(lists(visit).length - before, 1, "requests to search");
  } finally {
    await visit.close().finally(() => server.end());
  }
});

test("runs.a new filter begins at the top, and nothing of the old one is asked for or shown in it", async () => {
  const server = await serverWithRuns(2 * moreRows * 10);
  const visit = await Visit.open(server);
  const { page } = visit;
  try {
    await visit.withoutEvents();
    await visit.goto("/runs");
    await newest(page, "echo the-first").waitFor();
    const cancelled = `${lists(visit)[0]}&status=cancelled`;
    await answerAtOnce(page, cancelled);
    visit.requests.length = 0;

    const late = await standAtTheEnd(page);
    await Promise.all([page.waitForEvent("requestfailed", (request) => request === late), filterBy(page, "cancelled")]);
    await page.getByText(`${firstRows} runs loaded, more below`).waitFor();
    await newest(page, "echo copy-9997").waitFor();
    assert.deepEqual(lists(visit).slice(1), [], "requests for a page that nobody scrolled to");

    await scrollTo(page, firstRows + moreRows);
    const rows = await page.getByRole("list", { name: "Runs" }).getByRole("listitem").allTextContents();
    assert.ok(rows.every((row) => row.includes("cancelled")), rows.find((row) => !row.includes("cancelled")));
    assert.ok(lists(visit).slice(1).every((url) => url.includes("status=cancelled") && url.includes("after=")), lists(visit).join("\n"));
  } finally {
    await visit.close().finally(() => server.end());
  }
});

test("runs.a list of 10,000 runs is small, and each change of a run costs next to nothing", async () => {
  const server = await serverWithRuns(10_000);
  const visit = await Visit.open(server);
  const { page } = visit;
  const answers = [];
  page.on("response", async (response) => {
    const path = new URL(response.url()).pathname;
    if (!path.startsWith("/api/") || path.endsWith("/stream")) return;
    answers.push({ url: response.url(), bytes: (await response.body()).length });
  });
  const sum = () => answers.reduce((all, each) => all + each.bytes, 0);
  try {
    await visit.goto("/runs");
    await newest(page, "echo the-first").waitFor();
    assert.ok(sum() < 60_000, `${sum()} bytes to open the list`);

    answers.length = 0;
    for (let at = 0; at < 5; at += 1) {
      // One change at a time: a change within the overlap of two polls comes twice.
      await page.waitForTimeout(500);
      await server.run(`echo change-${at}; sleep 0.5; head -c 100000 /dev/zero | tr '\\0' x`);
      await page.getByRole("link", { name: new RegExp(`echo change-${at};`) }).waitFor();
    }
    const largest = answers.reduce((most, each) => (each.bytes > most.bytes ? each : most), { bytes: 0 });
    assert.ok(answers.length > 0 && largest.bytes < 2048, `${largest.bytes} bytes from ${largest.url}`);
    assert.deepEqual(answers.filter(({ url }) => !url.includes("changedSince=")), [], "requests that a run does not concern");
    // A run is asked for, starts and ends.
    assert.ok(sum() < 5 * 3 * 2048, `${sum()} bytes for five runs`);
  } finally {
    await visit.close().finally(() => server.end());
  }
});
