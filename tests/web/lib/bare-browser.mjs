import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromiumArgs, chromiumProgram } from "./chromium.mjs";

// Chromium as its users have it, for measuring: without a debugger. An attached one makes every
// error object of a library costly, even those that are never thrown.
export function openBareBrowser() {
  const profile = mkdtempSync(join(tmpdir(), "berth-chromium-"));
  const child = spawn(chromiumProgram(), ["--headless", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "--no-first-run", ...chromiumArgs], {
    stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
  });
  const [, , , to, from] = child.stdio;
  const waiting = new Map();
  const gone = new Promise((resolve) => child.once("exit", resolve));
  let last = 0;
  let said = "";

  void gone.then(() => waiting.forEach(({ reject }) => reject(new Error("chromium has ended"))));
  from.setEncoding("utf8").on("data", (text) => {
    const messages = (said + text).split("\0");
    said = messages.pop();
    for (const { id, result, error } of messages.map((each) => JSON.parse(each))) {
      const waits = waiting.get(id);
      waiting.delete(id);
      if (error) waits?.reject(new Error(error.message));
      else waits?.resolve(result);
    }
  });

  const send = (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject });
      to.write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
    });

  // A page with its own cache, cookies and storage.
  async function openPage() {
    const { browserContextId } = await send("Target.createBrowserContext");
    const { targetId } = await send("Target.createTarget", { url: "about:blank", browserContextId });
    const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
    return {
      send: (method, params) => send(method, params, sessionId),
      close: () => send("Target.disposeBrowserContext", { browserContextId }),
    };
  }

  async function close() {
    await send("Browser.close").catch(() => undefined);
    await gone;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  return { openPage, close };
}
