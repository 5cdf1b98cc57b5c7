import { test } from "./lib/runner.mjs";
import { environmentNamed, visiting } from "./lib/shared.mjs";

const phone = { width: 390, height: 800 };
const desk = { width: 1280, height: 800 };
// The other tests use a light and wide page.
const looks = [[phone, "light"], [phone, "dark"], [desk, "dark"]];

const pages = ["/", "/environments", "/runs", "/leases", "/templates", "/agents", "/secrets", "/plugins", "/activity", "/settings"];

const dialogs = [
  ["/runs", "Start a run"],
  ["/agents", "New agent"],
  ["/secrets", "New secret"],
  ["/plugins", "Install a plugin"],
];

async function accessibleInEveryLook(page, visit, name) {
  await visit.loaded();
  for (const [size, colorScheme] of looks) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme });
    await page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, colorScheme);
    await visit.accessible(`${name}, ${size.width} px, ${colorScheme}`);
  }
}

test("access.every page and form passes axe on a phone and in the dark", visiting(async (page, visit, server) => {
  const run = await server.run("echo to-be-looked-at; echo and-this >&2");
  const local = await environmentNamed(server, "Local");
  for (const path of [...pages, "/environments/new", `/environments/${local.id}`, `/environments/${local.id}/edit`, `/runs/${run.id}`]) {
    await visit.goto(path);
    await accessibleInEveryLook(page, visit, path);
  }
}));

test("access.every dialog and menu passes axe on a phone and in the dark", visiting(async (page, visit, server) => {
  const local = await environmentNamed(server, "Local");
  for (const [path, button] of [...dialogs, [`/environments/${local.id}`, "Delete"]]) {
    await visit.goto(path);
    await page.getByRole("button", { name: button, exact: true }).click();
    await page.getByRole("dialog").waitFor();
    await accessibleInEveryLook(page, visit, button);
  }
  await page.setViewportSize(desk);
  await visit.goto("/");
  await page.getByRole("button", { name: /Default/ }).click();
  await page.getByRole("menu").waitFor();
  await visit.seen("user-menu");
}));
