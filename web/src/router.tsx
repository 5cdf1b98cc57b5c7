import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";
import { ActivityPage } from "./pages/activity";
import { AgentsPage } from "./pages/agents";
import { EnvironmentPage } from "./pages/environment";
import { EnvironmentsPage } from "./pages/environments";
import { LeasePage } from "./pages/lease";
import { LeasesPage } from "./pages/leases";
import { NotFound } from "./pages/not-found";
import { PluginPage } from "./pages/plugin";
import { PluginsPage } from "./pages/plugins";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { SecretPage } from "./pages/secret";
import { SecretsPage } from "./pages/secrets";
import { SettingsPage } from "./pages/settings";
import { StartPage } from "./pages/start";
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
  at("/environments/$environment", EnvironmentPage),
  runs,
  terminal,
  at("/runs/$run", RunPage),
  at("/leases", LeasesPage),
  at("/leases/$lease", LeasePage),
  at("/secrets", SecretsPage),
  at("/secrets/$secret", SecretPage),
  at("/plugins", PluginsPage),
  at("/plugins/$plugin", PluginPage),
  at("/agents", AgentsPage),
  at("/activity", ActivityPage),
  at("/settings", SettingsPage),
]);

export const router = createRouter({ routeTree: tree, defaultPreload: false, scrollRestoration: true });

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
