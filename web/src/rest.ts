// What the first view does without: it comes as one file, when the first view is shown or when a page needs it.
export { AgentsPage } from "./pages/agents";
export { ActivityPage } from "./pages/activity";
export { EnvironmentPage } from "./pages/environment";
export { LeasePage } from "./pages/lease";
export { PluginPage } from "./pages/plugin";
export { PluginsPage } from "./pages/plugins";
export { RunPage } from "./pages/run";
export { SecretPage } from "./pages/secret";
export { SecretsPage } from "./pages/secrets";
export { SettingsPage } from "./pages/settings";
export { TemplatesPage } from "./pages/templates";
export { WallsPage } from "./pages/walls";
export { FirstRun } from "./runs/first-run";
export { StartRunDialog } from "./runs/start-run";
export { UserMenu } from "./shell/user-menu";
export { DialogFrame } from "./ui/dialog-frame";
