import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { definePlugin, runWorker } from "@paperclipai/plugin-sdk";

const leases = new Map();
let context;
let boot;

const folderOf = (params) => leases.get(params.providerLeaseId ?? params.lease?.providerLeaseId);

async function destroy(params) {
  const folder = folderOf(params);
  leases.delete(params.providerLeaseId);
  if (folder) await rm(folder, { recursive: true, force: true });
}

function execute(params) {
  return new Promise((resolve, reject) => {
    const child = spawn(params.command, params.args ?? [], {
      cwd: params.cwd ?? folderOf(params),
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", ...params.env },
      timeout: params.timeoutMs,
    });
    const out = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"]) {
      child[stream].setEncoding("utf8");
      child[stream].on("data", (chunk) => {
        out[stream] += chunk;
        context.execution?.log(stream, chunk);
      });
    }
    child.on("error", reject);
    child.on("close", (exitCode, signal) =>
      resolve({ exitCode, signal, timedOut: child.killed, ...out }));
    child.stdin.on("error", () => {});
    child.stdin.end(params.stdin ?? "");
  });
}

// The login terminal, under the name that each dialect has for it.
const login = {
  open: async (params) => {
    const name = params.loginCommandKey ?? params.command;
    const say = (chunk) => context.loginPty
      ? context.loginPty.output(params.hostRouteId, "login", chunk)
      : context.setupTokenPty.output("login", chunk);
    setTimeout(() => say(`login with ${name}\n`), 20);
    return { workerSessionId: "login" };
  },
  input: async () => {},
  stop: async () => {},
  close: async (params) => ({ hostRouteId: params.hostRouteId }),
};

const plugin = definePlugin({
  async setup(ctx) {
    context = ctx;
    boot = await ctx.state.get({ scopeKind: "instance", stateKey: "boot" });
    ctx.logger.info("compat is set up");
  },
  onHealth: async () => ({ status: "ok", message: JSON.stringify(boot) }),
  onEnvironmentValidateConfig: async ({ config }) =>
    ({ ok: config.image !== "bad", errors: config.image === "bad" ? ["image is bad"] : [],
       normalizedConfig: { image: "default", ...config } }),
  onEnvironmentProbe: async () => ({ ok: true, summary: "Compat is ready." }),
  async onEnvironmentAcquireLease(params) {
    const id = `compat://${params.runId}`;
    leases.set(id, await mkdtemp(path.join(params.config.root ?? tmpdir(), "berth-compat-")));
    return { providerLeaseId: id, metadata: { remoteCwd: leases.get(id), separator: "\u2028" } };
  },
  onEnvironmentResumeLease: async (params) =>
    ({ providerLeaseId: folderOf(params) ? params.providerLeaseId : null }),
  onEnvironmentReleaseLease: destroy,
  onEnvironmentDestroyLease: destroy,
  onEnvironmentRealizeWorkspace: async (params) => ({ cwd: folderOf(params) }),
  onEnvironmentExecute: execute,
  onLoginPtyOpen: login.open,
  onLoginPtyInput: login.input,
  onLoginPtyStop: login.stop,
  onLoginPtyClose: login.close,
  onSetupTokenPtyOpen: login.open,
  onSetupTokenPtyInput: login.input,
  onSetupTokenPtyStop: login.stop,
  onSetupTokenPtyClose: login.close,
});

export default plugin;
runWorker(plugin, import.meta.url);
