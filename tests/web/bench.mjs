// node bench.mjs URL: how long Chromium takes to show content, for our page and for one with a 1 MB
// script, over the same slow line. Content is what the user came for: on our page, a row of the
// server's environments. Prints both medians in milliseconds, from alternating rounds, so that
// machine load affects both.
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { openBareBrowser } from "./lib/bare-browser.mjs";

const rounds = 9;
const line = { offline: false, latency: 20, downloadThroughput: (10 * 1e6) / 8, uploadThroughput: (10 * 1e6) / 8 };
const bundleBytes = 1_000_000;
const limitMs = 30_000;

// A script of incompressible functions, like a large bundle; its last line shows the content.
function bundle() {
  let text = "";
  while (text.length < bundleBytes) text += `export function f${randomBytes(4).toString("hex")}(a){return a+"${randomBytes(150).toString("base64")}"}\n`;
  return `${text}document.getElementById("root").innerHTML="<main><table><tr><td><a>Local</a></td></tr></table></main>";\n`;
}

async function large() {
  const script = bundle();
  const server = createServer((request, response) => {
    const isScript = request.url === "/bundle.js";
    response.writeHead(200, { "content-type": isScript ? "text/javascript" : "text/html" });
    response.end(isScript ? script : `<!doctype html><title>Large</title><div id="root"></div><script type="module" src="/bundle.js"></script>`);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

// Runs in the page before everything else, and uses the page's own clock, which begins with the
// navigation.
const watch = `new Promise((shown) => {
  const watcher = new MutationObserver(() => {
    if (document.querySelector("main td a")?.checkVisibility() !== true) return;
    watcher.disconnect();
    requestAnimationFrame(() => shown(performance.now()));
  });
  watcher.observe(document, { childList: true, subtree: true });
}).then((at) => (window.shownAt = at));`;

async function timeToContent(browser, url) {
  const page = await browser.openPage();
  await page.send("Network.enable");
  await page.send("Network.emulateNetworkConditions", line);
  await page.send("Page.enable");
  await page.send("Page.addScriptToEvaluateOnNewDocument", { source: watch });
  await page.send("Page.navigate", { url });
  for (const ends = Date.now() + limitMs; Date.now() < ends;) {
    await new Promise((resume) => setTimeout(resume, 100));
    const { result } = await page.send("Runtime.evaluate", { expression: "window.shownAt", returnByValue: true });
    if (result.value === undefined) continue;
    await page.close();
    return result.value;
  }
  throw new Error(`${url} shows nothing after ${limitMs / 1000} s`);
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

const browser = openBareBrowser();
const other = await large();
try {
  const ours = [];
  const theirs = [];
  for (let round = 0; round < rounds; round += 1) {
    ours.push(await timeToContent(browser, `${process.argv[2]}/environments`));
    theirs.push(await timeToContent(browser, other.url));
  }
  console.log(JSON.stringify({ ours_ms: Math.round(median(ours)), bundle_ms: Math.round(median(theirs)) }));
} finally {
  other.close();
  await browser.close();
}
