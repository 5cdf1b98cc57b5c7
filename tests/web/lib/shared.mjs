import { Server } from "./server.mjs";
import { Visit } from "./browser.mjs";

const untilMs = 30_000;
const pauseMs = 50;
let server;

// The server that most tests share: without keys, so every visitor is its operator. Runs without an
// environment go to this machine itself.
export async function openServer() {
  if (!server) {
    server = await new Server().start();
    await server.defaultTo("Local");
  }
  return server;
}

export async function endServer() {
  await server?.end();
}

// A test body with a visit to the shared server, which is checked and closed at its end.
export function visiting(body, options) {
  return async () => {
    const open = await openServer();
    const visit = await Visit.open(open, options);
    try {
      await body(visit.page, visit, open);
    } catch (error) {
      await visit.picture(`failed-${Date.now()}`).catch(() => undefined);
      error.message += `\nconsole: ${visit.errors.join("\n")}\nurl: ${visit.page.url()}`;
      await visit.context.close();
      throw error;
    }
    await visit.close();
  };
}

// Polls until the answer is yes.
export async function until(what, ask) {
  for (const ends = Date.now() + untilMs; !(await ask()); await new Promise((resume) => setTimeout(resume, pauseMs))) {
    if (Date.now() > ends) throw new Error(`not after ${untilMs / 1000} s: ${what}`);
  }
}

export async function environmentNamed(server, name) {
  const company = await server.company();
  const all = await server.call("GET", `/api/companies/${company}/environments`);
  return all.find((each) => each.name === name);
}
