import assert from "node:assert/strict";
import { Visit } from "./lib/browser.mjs";
import { serverWithRuns } from "./lib/many-runs.mjs";
import { test } from "./lib/runner.mjs";

const count = 100_000;
const farRows = 6000;
const rowsMax = 100;
const frameMsMax = 2000;

const lists = (visit) => visit.requests.filter((request) => request.url().includes("/heartbeat-runs"));

// Scrolls to the end of what is loaded, again and again, until the list has this many rows; the longest wait for a frame.
async function scrollTo(page, rows) {
  return page.evaluate(async ({ rows, limitMs }) => {
    const box = document.querySelector("[role=list][aria-label=Runs]");
    const loaded = () => Number(box.querySelector("[role=listitem]").getAttribute("aria-setsize"));
    let worst = 0;
    let most = 0;
    const ends = performance.now() + limitMs;
    while (loaded() < rows && performance.now() < ends) {
      const began = performance.now();
      box.scrollTop = box.scrollHeight;
      await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
      worst = Math.max(worst, performance.now() - began);
      most = Math.max(most, box.querySelectorAll("[role=listitem]").length);
    }
    return { worst, most, loaded: loaded() };
  }, { rows, limitMs: 60_000 });
}

test("runs.a list of 100,000 runs opens, scrolls, filters and searches with few rows in the page and few requests", async () => {
  const server = await serverWithRuns(count);
  const visit = await Visit.open(server);
  const { page } = visit;
  try {
    await visit.goto("/runs");
    await page.getByRole("link", { name: "echo the-first" }).waitFor();
    assert.equal(lists(visit).length, 1, "requests to open the list");

    const scrolled = await scrollTo(page, farRows);
    assert.ok(scrolled.loaded >= farRows, `${scrolled.loaded} rows after a minute of scrolling`);
    assert.ok(scrolled.most <= rowsMax, `${scrolled.most} rows in the page`);
    assert.ok(scrolled.worst < frameMsMax, `a scroll took ${scrolled.worst} ms`);
    assert.ok(lists(visit).length <= farRows / 500 + 2, `${lists(visit).length} requests for ${farRows} rows`);
    await visit.seen("runs-many");

    let before = lists(visit).length;
    await page.getByRole("combobox", { name: "State" }).selectOption("cancelled");
    await page.getByRole("link", { name: `echo copy-${count - 3}`, exact: true }).waitFor();
    assert.equal(lists(visit).length - before, 1, "requests to filter");
    await page.getByRole("combobox", { name: "State" }).selectOption("");

    before = lists(visit).length;
    await page.getByRole("searchbox", { name: /Search commands/ }).fill("copy-4242");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "echo copy-4242", exact: true }).waitFor();
    await page.getByText("11 runs", { exact: true }).waitFor();
    assert.ok(lists(visit).length - before <= 2, "requests to search");
  } finally {
    await visit.close().finally(() => server.end());
  }
});
