import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { Visit } from "./lib/browser.mjs";
import { needsSandboxes } from "./lib/machine.mjs";
import { test } from "./lib/runner.mjs";
import { Server } from "./lib/server.mjs";
import { until } from "./lib/shared.mjs";

// Shows a browser what it has sent, and tries to set the server's cookie.
const inside = `
import http.server, json
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        seen = json.dumps(dict(self.headers)).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", "berth_session=stolen; Path=/")
        self.send_header("Content-Length", str(len(seen)))
        self.end_headers()
        self.wfile.write(seen)
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8080), Page)
print("listening", flush=True)
server.serve_forever()
`;

async function listening(server, key) {
  const company = await server.company(key);
  const environment = await server.call("POST", `/api/companies/${company}/environments`, { name: "ports", driver: "sandbox", config: { provider: "linux" } }, key);
  const run = await server.call("POST", `/api/companies/${company}/runs`, { command: "python3", args: ["-c", inside], environmentId: environment.id }, key);
  const of = (path) => server.call("GET", `/api/heartbeat-runs/${run.id}${path}`, undefined, key);
  await until("the sandbox listens", async () => JSON.stringify(await of("/log")).includes("listening"));
  return (await of("")).environmentLease.id;
}

// The address that `berth sandbox port` opens for a page.
function forwarded(server, key, lease) {
  const client = spawn(process.env.BERTH, ["--url", server.url, "sandbox", "port", lease, "8080"], { env: { ...process.env, BERTH_TOKEN: key }, stdio: ["ignore", "pipe", "ignore"] });
  const url = new Promise((resolve, reject) => {
    client.stdout.once("data", (bytes) => resolve(String(bytes).trim()));
    client.once("exit", (code) => reject(new Error(`berth sandbox port ended with ${code}`)));
  });
  return { client, url };
}

// What the browser sends to another port of the server's host: cookies ignore ports.
async function cookieOfNeighbour(page, host) {
  const neighbour = createServer((request, answer) => answer.end(request.headers.cookie ?? ""));
  await new Promise((resume) => neighbour.listen(0, host, resume));
  const answer = await page.goto(`http://${host}:${neighbour.address().port}`);
  const sent = await answer.text();
  neighbour.closeAllConnections();
  neighbour.close();
  return sent;
}

test("ports.a page of a sandbox gets no cookie of the server and gives it none", async () => {
  needsSandboxes();
  const server = await new Server(["--mode", "authenticated"]).start();
  const visit = await Visit.open(server);
  let port;
  try {
    const admin = readFileSync(join(server.home, "admin.token"), "utf8").trim();
    await visit.goto("/");
    await visit.page.getByLabel("Key").fill(admin);
    await visit.page.getByRole("button", { name: "Sign in" }).click();
    await visit.page.getByRole("heading", { name: "Start" }).waitFor();
    const kept = async () => (await visit.context.cookies(server.url)).find((each) => each.name === "berth_session")?.value;
    assert.equal(await kept(), admin, "the browser has signed in");

    const neighbour = await cookieOfNeighbour(visit.page, new URL(server.url).hostname);
    assert.ok(neighbour.includes(admin), "on the host of the server a page does get the cookie");

    port = forwarded(server, admin, await listening(server, admin));
    const url = await port.url;
    const answer = await visit.page.goto(url);
    const seen = JSON.parse(await answer.text());
    assert.ok(seen["User-Agent"].includes("Chrome"), "it is the browser's own request");
    assert.equal(seen.Cookie, undefined, "what is inside was sent a cookie");
    await visit.page.goto(url);
    assert.equal(await kept(), admin, "what is inside has changed the cookie of the server");
    await visit.goto("/");
    await visit.page.getByRole("heading", { name: "Start" }).waitFor();
  } finally {
    port?.client.kill();
    await visit.context.close();
    await server.end();
  }
});
