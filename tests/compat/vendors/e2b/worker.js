import { randomUUID } from "node:crypto";
import { definePlugin, runWorker } from "@paperclipai/plugin-sdk";
import { CommandExitError, Sandbox, SandboxNotFoundError, TimeoutError } from "e2b";
import { quoted, scriptOf } from "./shell.js";

// Each call connects anew, as with the real service: a worker keeps no sandbox in memory.
const options = ({ apiKey, apiUrl, timeoutMs }) =>
  ({ apiKey, apiUrl, sandboxUrl: apiUrl, ...(timeoutMs ? { timeoutMs } : {}) });
const connect = (params, id = params.providerLeaseId ?? params.lease.providerLeaseId) =>
  Sandbox.connect(id, options(params.config));

async function workspaceOf(sandbox, config) {
  await sandbox.setTimeout(config.timeoutMs);
  const home = (await sandbox.commands.run("pwd")).stdout.trim();
  const remoteCwd = `${home}/paperclip-workspace`;
  await sandbox.commands.run(`mkdir -p ${quoted(remoteCwd)}`);
  return remoteCwd;
}

async function made({ config }) {
  const sandbox = await Sandbox.create(config.template ?? "base",
    { ...options(config), metadata: { paperclipProvider: "e2b" } });
  try {
    return { sandbox, remoteCwd: await workspaceOf(sandbox, config) };
  } catch (error) {
    await sandbox.kill().catch(() => {});
    throw error;
  }
}

const leaseOf = (sandbox, config, remoteCwd, resumedLease) => ({
  providerLeaseId: sandbox.sandboxId,
  metadata: { provider: "e2b", shellCommand: "bash", template: config.template, reuseLease: config.reuseLease,
              sandboxId: sandbox.sandboxId, remoteCwd, resumedLease },
});

const gone = { providerLeaseId: null, metadata: { expired: true } };

async function end(params, how) {
  if (!params.providerLeaseId) return;
  try {
    const sandbox = await connect(params);
    if (how === "pause") await sandbox.pause().catch(() => sandbox.kill());
    else await sandbox.kill();
  } catch (error) {
    if (!(error instanceof SandboxNotFoundError)) throw error;
  }
}

async function execute(params) {
  const sandbox = await connect(params);
  await sandbox.setTimeout(params.config.timeoutMs).catch(() => {});
  const stdinFile = params.stdin === undefined ? undefined : `/tmp/paperclip-stdin-${randomUUID()}`;
  if (stdinFile) await sandbox.files.write(stdinFile, params.stdin);
  const { cwd, ...rest } = params;
  try {
    const { exitCode, stdout, stderr } = await sandbox.commands.run(scriptOf(rest, { stdinFile }),
      { cwd, timeoutMs: params.timeoutMs ?? params.config.timeoutMs });
    return { exitCode, timedOut: false, stdout, stderr };
  } catch (error) {
    if (error instanceof CommandExitError) {
      return { exitCode: error.exitCode, timedOut: false, stdout: error.stdout, stderr: error.stderr };
    }
    if (error instanceof TimeoutError) {
      return { exitCode: null, timedOut: true, stdout: "", stderr: `${error.message}\n` };
    }
    throw error;
  } finally {
    if (stdinFile) await sandbox.files.remove(stdinFile).catch(() => {});
  }
}

const plugin = definePlugin({
  async setup(ctx) {
    ctx.logger.info("e2b is set up");
  },
  onHealth: async () => ({ status: "ok" }),
  onEnvironmentValidateConfig: async ({ config }) =>
    ({ ok: true, normalizedConfig: { template: "base", timeoutMs: 3_600_000, reuseLease: false, ...config } }),
  async onEnvironmentProbe(params) {
    try {
      const { sandbox } = await made(params);
      await sandbox.kill();
      return { ok: true, summary: `Connected to E2B template ${params.config.template}.` };
    } catch (error) {
      return { ok: false, summary: `E2B template ${params.config.template}: ${error.message}` };
    }
  },
  async onEnvironmentAcquireLease(params) {
    const { sandbox, remoteCwd } = await made(params);
    return leaseOf(sandbox, params.config, remoteCwd, false);
  },
  async onEnvironmentResumeLease(params) {
    try {
      const sandbox = await connect(params);
      return leaseOf(sandbox, params.config, await workspaceOf(sandbox, params.config), true);
    } catch (error) {
      if (error instanceof SandboxNotFoundError) return gone;
      throw error;
    }
  },
  onEnvironmentReleaseLease: (params) => end(params, params.config.reuseLease === true ? "pause" : "kill"),
  onEnvironmentDestroyLease: (params) => end(params, "kill"),
  async onEnvironmentRealizeWorkspace(params) {
    const cwd = params.lease.metadata?.remoteCwd ?? params.workspace.remotePath ?? "/paperclip-workspace";
    await (await connect(params)).commands.run(`mkdir -p ${quoted(cwd)}`);
    return { cwd };
  },
  onEnvironmentExecute: execute,
});

export default plugin;
runWorker(plugin, import.meta.url);
