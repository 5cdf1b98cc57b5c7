import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const startLimitMs = 30_000;
const runLimitMs = 120_000;

// A real server on loopback, with a home folder that is removed with it.
export class Server {
  constructor(options = []) {
    this.home = mkdtempSync(join(tmpdir(), "berth-web-"));
    this.options = options;
    this.listen = "127.0.0.1:0";
    this.said = "";
  }

  async start() {
    const berth = process.env.BERTH;
    if (!berth) throw new Error("BERTH names no program");
    this.process = spawn(berth, ["serve", "--home", this.home, "--listen", this.listen, ...this.options], { stdio: ["ignore", "pipe", "pipe"] });
    this.process.stderr.on("data", (bytes) => (this.said += bytes));
    try {
      this.url = await this.listening();
    } catch (error) {
      await this.end();
      throw error;
    }
    this.listen = new URL(this.url).host;
    return this;
  }

  listening() {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no server after ${startLimitMs} ms: ${this.said}`)), startLimitMs);
      let out = "";
      this.process.stdout.on("data", (bytes) => {
        out += bytes;
        const url = out.match(/listening on (\S+)/)?.[1];
        if (!url) return;
        clearTimeout(timer);
        resolve(url);
      });
      this.process.once("exit", (code) => {
        clearTimeout(timer);
        reject(new Error(`the server ended with ${code}: ${this.said}`));
      });
    });
  }

  async stop() {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return;
    const gone = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    const timer = setTimeout(() => this.process.kill("SIGKILL"), 20_000);
    await gone;
    clearTimeout(timer);
  }

  async end() {
    await this.stop();
    rmSync(this.home, { recursive: true, force: true });
  }

  async call(method, path, body, key) {
    const headers = { "content-type": "application/json" };
    if (key) headers.authorization = `Bearer ${key}`;
    const response = await fetch(this.url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  async company(key) {
    return (await this.call("GET", "/api/companies", undefined, key))[0].id;
  }

  // Where runs without an environment go.
  async defaultTo(name) {
    const company = await this.company();
    const place = (await this.call("GET", `/api/companies/${company}/environments`)).find((each) => each.name === name);
    await this.call("PATCH", `/api/companies/${company}`, { defaultEnvironmentId: place.id });
  }

  // Runs a command line and waits for its end.
  async run(line, more = {}) {
    const company = await this.company();
    const run = await this.call("POST", `/api/companies/${company}/runs`, { command: "sh", args: ["-c", line], ...more });
    return this.ended(run.id);
  }

  async ended(id) {
    for (const ends = Date.now() + runLimitMs; Date.now() < ends;) {
      const run = await this.call("GET", `/api/heartbeat-runs/${id}?wait=30`);
      if (!["queued", "starting", "running"].includes(run.status)) return run;
    }
    throw new Error(`run ${id} goes on after ${runLimitMs / 1000} s`);
  }
}
