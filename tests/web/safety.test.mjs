import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Visit } from "./lib/browser.mjs";
import { test } from "./lib/runner.mjs";
import { Server } from "./lib/server.mjs";
import { openServer, visiting } from "./lib/shared.mjs";

const untouched = "what the visitor has copied";

// A visitor whose pages may use the clipboard, and who has something in it.
async function fillClipboard(visit) {
  await visit.context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await visit.page.evaluate((text) => navigator.clipboard.writeText(text), untouched);
}

const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

const markup = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"'\`{{7*7}}`;

test("safety.markup in names, commands, output and errors is shown and never run", visiting(async (page, visit, server) => {
  const company = await server.company();
  const agent = await server.call("POST", `/api/companies/${company}/agents`, { name: markup, adapterType: "process", adapterConfig: { command: "echo", args: [markup] } });
  const environment = await server.call("POST", `/api/companies/${company}/environments`, { name: markup.slice(0, 60), description: markup, driver: "ssh", config: { host: "127.0.0.1", port: 1, username: "u", remoteWorkspacePath: "/tmp/x" } });
  const run = await server.run(`printf '%s\\n' "$0"; printf '\\033]0;title\\007\\033]52;c;aGFja2Vk\\007\\033[2J\\033[8mhidden\\033[0m\\n'; printf '%s\\n' "$0" >&2; exit 1`.replaceAll("$0", markup.replaceAll('"', '\\"').replaceAll("`", "\\`")));
  await visit.goto("/");
  await fillClipboard(visit);
  for (const path of ["/runs", `/runs/${run.id}`, "/environments", `/environments/${environment.id}`, "/agents", "/activity", "/"]) {
    await visit.goto(path);
    await visit.loaded();
    if (path !== "/") await page.getByText("onerror=").locator("visible=true").first().waitFor();
    assert.equal(await page.evaluate(() => window.hacked), undefined, path);
    assert.equal(await page.locator("img[src=x]").count(), 0, path);
  }
  await visit.goto(`/runs/${run.id}`);
  await page.getByRole("log").getByText("<script>window.hacked=1</script>").first().waitFor();
  assert.ok(!(await page.title()).startsWith("title"));
  assert.equal(await clipboard(page), untouched);
  await server.call("DELETE", `/api/agents/${agent.id}`);
  await server.call("DELETE", `/api/environments/${environment.id}`);
}));

test("safety.a terminal's output cannot act on the page", visiting(async (page, visit, server) => {
  const company = await server.company();
  const script = `printf '\\033]0;stolen\\007\\033]52;c;aGFja2Vk\\007\\033]8;;javascript:window.hacked=1\\007click\\033]8;;\\007 ${markup.replaceAll("'", "")} done-here\\n'; sleep 30`;
  const run = await server.call("POST", `/api/companies/${company}/runs`, { command: "sh", args: ["-c", script], stdinOpen: true, terminal: { columns: 100, rows: 24 } });
  await visit.goto("/");
  await fillClipboard(visit);
  await visit.goto(`/runs/${run.id}/terminal`);
  await page.waitForFunction(() => document.querySelector(".xterm")?.textContent.includes("done-here"));
  await page.getByText("click").first().click({ force: true });
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.ok(!(await page.title()).includes("stolen"));
  assert.equal(await clipboard(page), untouched);
  await server.call("POST", `/api/heartbeat-runs/${run.id}/cancel`);
}));

test("safety.the page is served with a strict policy and caching headers, and the API is left alone", async () => {
  const server = await openServer();
  const html = { headers: { accept: "text/html" } };
  const page = await fetch(`${server.url}/runs/anything`, html);
  assert.equal(page.status, 200);
  const policy = page.headers.get("content-security-policy");
  assert.match(policy, /default-src 'none'/);
  assert.ok(!/unsafe-(inline|eval)/.test(policy));
  assert.equal(page.headers.get("x-content-type-options"), "nosniff");
  assert.equal(page.headers.get("cache-control"), "no-cache");
  const text = await page.text();
  for (const tag of ["script", "style"]) {
    const [, inside] = text.match(new RegExp(`<${tag}>(.*?)</${tag}>`, "s"));
    const hash = createHash("sha256").update(inside).digest("base64");
    assert.ok(policy.includes(`${tag}-src 'self' 'sha256-${hash}';`), `${policy} does not allow exactly the ${tag} of the page`);
  }
  const script = text.match(/src="(\/assets\/[^"]+\.js)"/)[1];
  const file = await fetch(server.url + script, { headers: { "accept-encoding": "br" } });
  assert.match(file.headers.get("cache-control"), /immutable/);
  assert.equal(file.headers.get("content-encoding"), "br");
  const again = await fetch(`${server.url}/`, { headers: { ...html.headers, "if-none-match": page.headers.get("etag") } });
  assert.equal(again.status, 304);
  assert.equal((await fetch(`${server.url}/assets/none.js`, html)).status, 404);
  assert.equal((await fetch(`${server.url}/api/none`, html)).status, 404);
  assert.equal((await fetch(`${server.url}/none`)).status, 404, "a program that mistypes a path");
});

test("safety.the first load is small, and a page change asks once", async () => {
  const server = await new Server().start();
  const visit = await Visit.open(server);
  const { page } = visit;
  let bytes = 0;
  try {
    const session = await visit.context.newCDPSession(page);
    await session.send("Network.enable");
    session.on("Network.loadingFinished", (event) => (bytes += event.encodedDataLength));
    await visit.withoutEvents();
    await visit.goto("/environments");
    await page.getByRole("link", { name: "Local", exact: true }).waitFor();
    await page.waitForFunction(() => performance.getEntriesByType("resource").some((each) => /assets\/rest-/.test(each.name) && each.responseEnd > 0));
    const first = visit.requests.filter((request) => !request.url().startsWith("data:"));
    console.log(`      first load: ${first.length} requests, ${Math.round(bytes / 1024)} KB`);
    assert.equal(new Set(first.map((request) => request.url())).size, first.length, `something is asked for twice: ${first.map((request) => request.url()).join(" ")}`);
    assert.ok(first.length <= 6, first.map((request) => request.url()).join("\n"));
    assert.ok(bytes <= 300 * 1024, `${bytes} bytes`);
    for (const [name, heading] of [["Runs", "Runs"], ["Leases", "Leases"], ["Templates", "Templates"], ["Agents", "Agents"], ["Secrets", "Secrets"], ["Activity", "Activity"], ["Settings", "Settings"], ["Start", "Start"]]) {
      const before = visit.requests.length;
      await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
      await visit.loaded();
      const parts = name === "Settings" ? 2 : 1; // the keys and the quota
      assert.ok(visit.requests.length - before <= parts, `${name}: ${visit.requests.slice(before).map((request) => request.url()).join(" ")}`);
    }
  } finally {
    await visit.close().finally(() => server.end());
  }
});

test("safety.works on a phone, in the dark, and with the keyboard alone", visiting(async (page, visit) => {
  await visit.goto("/runs");
  await visit.seen("phone-runs-dark");
  await page.getByRole("button", { name: "Menu" }).press("Enter");
  await page.getByRole("navigation").getByRole("link", { name: "Environments" }).press("Enter");
  await page.getByRole("heading", { name: "Environments" }).waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `the page is ${wide} px too wide`);
  await visit.seen("phone-environments-dark");
}, { viewport: { width: 390, height: 800 }, colorScheme: "dark", isMobile: true, hasTouch: true }));

test("safety.a lost server is told, and the page goes on with nothing missed", async () => {
  const server = await new Server().start();
  const visit = await Visit.open(server);
  try {
    await visit.goto("/runs");
    await visit.page.getByText("Nothing has run yet").waitFor();
    await server.stop();
    await visit.page.getByText("The server is lost").waitFor();
    await visit.picture("server-lost");
    await server.start();
    const run = await server.run("echo while-you-were-away");
    await visit.page.getByRole("link", { name: /while-you-were-away/ }).waitFor({ timeout: 30_000 });
    await visit.page.getByText("The server is lost").waitFor({ state: "detached" });
    assert.equal(run.status, "succeeded");
  } finally {
    await visit.close({ lost: true }).finally(() => server.end());
  }
});
