import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { chromiumArgs, chromiumProgram } from "./chromium.mjs";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.SCREENSHOTS ?? "";
let browser;

export async function openBrowser() {
  browser ??= await chromium.launch({ executablePath: chromiumProgram(), args: chromiumArgs });
  return browser;
}

export async function closeBrowser() {
  await browser?.close();
}

// One visit: its own context, in which every request, console error and blocked resource is
// recorded.
export class Visit {
  static async open(server, options = {}) {
    const visit = new Visit();
    visit.server = server;
    visit.context = await (await openBrowser()).newContext({ viewport: { width: 1280, height: 800 }, bypassCSP: false, ...options });
    visit.page = await visit.context.newPage();
    visit.requests = [];
    visit.errors = [];
    visit.page.setDefaultTimeout(30_000);
    visit.context.on("request", (request) => visit.requests.push(request));
    visit.page.on("pageerror", (error) => visit.errors.push(String(error)));
    visit.page.on("console", (message) => message.type() === "error" && visit.errors.push(message.text()));
    visit.page.on("dialog", (dialog) => { visit.errors.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
    return visit;
  }

  // From here on no server event reaches the page, so that every request is caused by its user.
  async withoutEvents() {
    await this.page.route("**/changes/stream", () => undefined);
  }

  // The requests whose address contains this text.
  asked(part) {
    return this.requests.map((request) => request.url()).filter((url) => url.includes(part));
  }

  async goto(path) {
    await this.spelled();
    await this.page.goto(this.server.url + path, { waitUntil: "domcontentloaded" });
    await this.page.locator("main h1").first().waitFor();
  }

  // Nothing on the page, including attributes, is an object that was printed as "[object Object]".
  async spelled() {
    const page = await this.page.content().catch(() => "");  // a page that is being left has none
    assert.ok(!page.includes("[object Object]"), `${this.page.url()} shows [object Object]`);
  }

  // Waits until nothing on the page is still loading.
  async loaded() {
    await this.page.getByText("Loading…").first().waitFor({ state: "detached" });
  }

  async picture(name) {
    if (!pictures) return;
    mkdirSync(pictures, { recursive: true });
    await this.page.screenshot({ path: join(pictures, `${name}.png`) });
  }

  // axe reports no serious finding on the current page.
  async accessible(name) {
    await this.spelled();
    const session = await this.context.newCDPSession(this.page);
    await session.send("Runtime.evaluate", { expression: axeSource });
    const { result } = await session.send("Runtime.evaluate", {
      expression: `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }).then((r) =>
        JSON.stringify(r.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
          .map((v) => v.id + ": " + v.help + " at " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.failureSummary).join(" | "))))`,
      awaitPromise: true,
      returnByValue: true,
    });
    assert.deepEqual(JSON.parse(result.value), [], `${name}: axe`);
  }

  async seen(name) {
    await this.picture(name);
    await this.accessible(name);
  }

  // Nothing left our origin, the content policy blocked nothing, and no script failed.
  async close({ lost = false } = {}) {
    await this.spelled();
    const origin = new URL(this.server.url).host;
    const foreign = this.requests.map((request) => request.url()).filter((url) => !url.startsWith("data:") && !url.startsWith("blob:") && new URL(url).host !== origin);
    await this.context.close();
    assert.deepEqual(foreign, [], "requests to other hosts");
    const serious = this.errors.filter((error) => !/status of (400|401|404|409|422)/.test(error) && !(lost && /ERR_|WebSocket|Failed to load/.test(error)));
    assert.deepEqual(serious, [], "errors in the console");
  }
}
