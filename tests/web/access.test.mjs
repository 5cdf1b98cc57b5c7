import { test } from "./lib/runner.mjs";
import { environmentNamed, visiting } from "./lib/shared.mjs";

const variants = [
  ["in the dark", { colorScheme: "dark" }],
  ["on a phone", { viewport: { width: 390, height: 800 }, isMobile: true, hasTouch: true }],
];

const pages = ["/", "/environments", "/runs", "/leases", "/templates", "/agents", "/secrets", "/plugins", "/activity", "/settings"];

const dialogs = [
  ["/runs", "Start a run"],
  ["/agents", "New agent"],
  ["/secrets", "New secret"],
  ["/plugins", "Install a plugin"],
];

for (const [name, options] of variants) {
  test(`access.every page, dialog and form passes axe ${name}`, visiting(async (page, visit, server) => {
    const run = await server.run("echo to-be-looked-at; echo and-this >&2");
    const local = await environmentNamed(server, "Local");
    for (const path of [...pages, "/environments/new", `/environments/${local.id}`, `/environments/${local.id}/edit`, `/runs/${run.id}`]) {
      await visit.goto(path);
      await page.getByText("Loading…").first().waitFor({ state: "detached" });
      await visit.accessible(`${path} ${name}`);
    }
    for (const [path, button] of dialogs) {
      await visit.goto(path);
      await page.getByRole("button", { name: button }).click();
      await page.getByRole("dialog").waitFor();
      await page.getByText("Loading…").first().waitFor({ state: "detached" });
      await visit.accessible(`${button} ${name}`);
    }
    await visit.picture(`access-${name.replaceAll(" ", "-")}`);
  }, options));
}
