import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { EnvironmentsPage } from "./pages/environments";
import { LeasesPage } from "./pages/leases";
import { NotFound } from "./pages/not-found";
import { RunsPage } from "./pages/runs";
import { StartPage } from "./pages/start";
import { rest, type LatePage } from "./late";
import { Shell } from "./shell/shell";

export interface RunSearch {
  status?: string | undefined;
  environment?: string | undefined;
  agent?: string | undefined;
  search?: string | undefined;
}

const text = (value: unknown) => (typeof value === "string" && value ? value : undefined);

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });
const at = <P extends string>(path: P, component: () => React.ReactNode) =>
  createRoute({ getParentRoute: () => root, path, component });
const late = <P extends string>(path: P, name: LatePage) =>
  createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(rest, name) });

const runs = createRoute({
  getParentRoute: () => root,
  path: "/runs",
  component: RunsPage,
  validateSearch: (given: Record<string, unknown>): RunSearch => ({
    status: text(given["status"]),
    environment: text(given["environment"]),
    agent: text(given["agent"]),
    search: text(given["search"]),
  }),
});

// The form is drawn by a library that only this page needs, so it comes when the page is opened.
const editor = lazyRouteComponent(() => import("./pages/environment-editor"), "EnvironmentEditorPage");
const newEnvironment = createRoute({ getParentRoute: () => root, path: "/environments/new", component: editor });
const editEnvironment = createRoute({ getParentRoute: () => root, path: "/environments/$environment/edit", component: editor });

const terminal = createRoute({
  getParentRoute: () => root,
  path: "/runs/$run/terminal",
  component: lazyRouteComponent(() => import("./pages/terminal"), "TerminalPage"),
});

const tree = root.addChildren([
  at("/", StartPage),
  at("/environments", EnvironmentsPage),
  newEnvironment,
  editEnvironment,
  late("/environments/$environment", "EnvironmentPage"),
  runs,
  terminal,
  late("/runs/$run", "RunPage"),
  at("/leases", LeasesPage),
  late("/leases/$lease", "LeasePage"),
  late("/templates", "TemplatesPage"),
  late("/secrets", "SecretsPage"),
  late("/secrets/$secret", "SecretPage"),
  late("/plugins", "PluginsPage"),
  late("/plugins/$plugin", "PluginPage"),
  late("/agents", "AgentsPage"),
  late("/activity", "ActivityPage"),
  late("/settings", "SettingsPage"),
  late("/settings/walls", "WallsPage"),
]);

export const router = createRouter({ routeTree: tree, defaultPreload: false, scrollRestoration: true });

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
