import { createHash, randomUUID } from "node:crypto";
import { stat } from "node:fs/promises";
import path from "node:path";
import { Daytona, DaytonaNotFoundError } from "@daytonaio/sdk";
import { definePlugin, runWorker } from "@paperclipai/plugin-sdk";
import { quoted, scriptOf } from "./shell.js";

let context;
const sessions = new Map(); // by sandbox: a lease's commands run in one session

const clientOf = ({ apiKey, apiUrl }) => new Daytona({ apiKey, apiUrl });
const idOf = (params) => params.providerLeaseId ?? params.lease.providerLeaseId;
const sandboxOf = (params) => clientOf(params.config).get(idOf(params));

// A file in the workspace that identifies a stopped sandbox as that of this agent and workspace.
const sentinelPath = (cwd) => `${cwd}/.paperclip-runtime/reusable-sandbox-lease.json`;
const tokenOf = (params) => createHash("sha256").update(JSON.stringify([
  params.companyId, params.environmentId, params.agentId, params.executionWorkspaceId, params.adapterType ?? null,
  params.config.image])).digest("hex");
const hasSentinel = (params) =>
  params.config.reuseLease === true && params.agentId && params.executionWorkspaceId;

async function workspaceOf(sandbox) {
  const cwd = `${(await sandbox.getWorkDir()) ?? "/home/daytona"}/paperclip-workspace`;
  await sandbox.fs.createFolder(cwd, "755");
  return cwd;
}

async function acquire(params) {
  const { config } = params;
  const sandbox = await clientOf(config).create({
    image: config.image ?? "daytonaio/sandbox:0.8.0",
    labels: { "paperclip-provider": "daytona", "paperclip-reuse-lease": String(config.reuseLease === true) },
  }, { timeout: 60 });
  try {
    const remoteCwd = await workspaceOf(sandbox);
    const metadata = { provider: "daytona", shellCommand: "sh", sandboxId: sandbox.id, remoteCwd };
    if (hasSentinel(params)) {
      const token = tokenOf(params);
      await sandbox.fs.createFolder(`${remoteCwd}/.paperclip-runtime`, "755");
      await sandbox.fs.uploadFile(Buffer.from(JSON.stringify({ token })), sentinelPath(remoteCwd));
      metadata.workspaceSentinel = { token, result: "written" };
    }
    return { sandbox, lease: { providerLeaseId: sandbox.id, metadata } };
  } catch (error) {
    await sandbox.delete().catch(() => {});
    throw error;
  }
}

async function resume(params) {
  let sandbox;
  try {
    sandbox = await sandboxOf(params);
  } catch (error) {
    if (error instanceof DaytonaNotFoundError) return { providerLeaseId: null, metadata: { expired: true } };
    throw error;
  }
  sessions.delete(sandbox.id);
  if (sandbox.state !== "started") await sandbox.start(60);
  const remoteCwd = await workspaceOf(sandbox);
  const wanted = params.leaseMetadata?.workspaceSentinel?.token;
  const read = await sandbox.process.executeCommand(`cat ${quoted(sentinelPath(remoteCwd))}`);
  const found = read.exitCode === 0 ? JSON.parse(read.result).token : null;
  // It has been started, and its id is not returned: the host has to end it.
  if (!found || found !== wanted) {
    return { providerLeaseId: null, metadata: { workspaceSentinel: { token: found, result: "missing" } } };
  }
  return { providerLeaseId: sandbox.id, metadata: { ...params.leaseMetadata, resumedLease: true } };
}

async function end(params, how) {
  if (!params.providerLeaseId) return;
  try {
    const sandbox = await sandboxOf(params);
    const session = sessions.get(sandbox.id);
    sessions.delete(sandbox.id);
    if (session) await sandbox.process.deleteSession(await session).catch(() => {});
    if (how === "stop") await sandbox.stop(60).catch(() => sandbox.delete());
    else await sandbox.delete();
  } catch (error) {
    if (!(error instanceof DaytonaNotFoundError)) throw error;
  }
}

async function openSession(sandbox) {
  const id = `paperclip-${randomUUID()}`;
  await sandbox.process.createSession(id);
  return id;
}

async function executeInSession(sandbox, script) {
  if (!sessions.has(sandbox.id)) sessions.set(sandbox.id, openSession(sandbox));
  const session = await sessions.get(sandbox.id);
  const { cmdId } = await sandbox.process.executeSessionCommand(session,
    { command: `( ${script} )`, runAsync: true });
  const out = { stdout: "", stderr: "" };
  const take = (stream) => (chunk) => {
    out[stream] += chunk;
    context.execution?.log(stream, chunk);
  };
  // Has no deadline of its own.
  await sandbox.process.getSessionCommandLogs(session, cmdId, take("stdout"), take("stderr"));
  let exitCode;
  for (const pause of [0, 50, 100, 200, 400]) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    ({ exitCode } = await sandbox.process.getSessionCommand(session, cmdId));
    if (exitCode !== undefined && exitCode !== null) break;
  }
  return { exitCode: exitCode ?? null, timedOut: false, ...out };
}

async function execute(params) {
  const sandbox = await sandboxOf(params);
  const stdinFile = params.stdin === undefined ? undefined : `/tmp/paperclip-stdin-${randomUUID()}`;
  if (stdinFile) await sandbox.fs.uploadFile(Buffer.from(params.stdin), stdinFile);
  const script = scriptOf(params, { stdinFile });
  try {
    if (!params.bypassSession) return await executeInSession(sandbox, script);
    const seconds = params.timeoutMs ? Math.ceil(params.timeoutMs / 1000) : undefined;
    const { exitCode, result } = await sandbox.process.executeCommand(script, undefined, undefined, seconds);
    return { exitCode, timedOut: false, stdout: result, stderr: "" };
  } finally {
    if (stdinFile) await sandbox.fs.deleteFile(stdinFile).catch(() => {});
  }
}

// Files use the vendor's transfer, folders an archive.
async function carry(params, one) {
  const sandbox = await sandboxOf(params);
  const operations = [];
  for (const { operationId, files } of params.operations) {
    let bytesTransferred = 0;
    for (const file of files) bytesTransferred += await one(sandbox, file);
    operations.push({ operationId, filesTransferred: files.length, bytesTransferred });
  }
  return { operations };
}

async function upload(sandbox, file) {
  if (file.kind === "directory") throw new Error("folders are not carried here");
  const scratch = path.posix.join(path.posix.dirname(file.targetPath), `.paperclip-upload-${randomUUID()}`);
  await sandbox.fs.uploadFile(file.sourcePath, scratch);
  await sandbox.fs.setFilePermissions(scratch, { mode: (file.mode ?? 0o644).toString(8) });
  await sandbox.process.executeCommand(`mv -f ${quoted(scratch)} ${quoted(file.targetPath)}`);
  return (await stat(file.sourcePath)).size;
}

async function download(sandbox, file) {
  if (file.kind === "directory") throw new Error("folders are not carried here");
  await sandbox.fs.downloadFile(file.sourcePath, file.targetPath);
  return (await stat(file.targetPath)).size;
}

const plugin = definePlugin({
  async setup(ctx) {
    context = ctx;
  },
  onHealth: async () => ({ status: "ok" }),
  onEnvironmentValidateConfig: async ({ config }) => config.apiKey
    ? { ok: true, normalizedConfig: { timeoutMs: 300_000, reuseLease: false, ...config } }
    : { ok: false, errors: ["Daytona needs an API key"] },
  async onEnvironmentProbe(params) {
    try {
      const { sandbox } = await acquire({ ...params, config: { ...params.config, reuseLease: false } });
      await sandbox.delete();
      return { ok: true, summary: "Connected to Daytona." };
    } catch (error) {
      return { ok: false, summary: `Daytona: ${error.message}` };
    }
  },
  onEnvironmentAcquireLease: async (params) => (await acquire(params)).lease,
  onEnvironmentResumeLease: resume,
  onEnvironmentReleaseLease: (params) => end(params, params.config.reuseLease === true ? "stop" : "delete"),
  onEnvironmentDestroyLease: (params) => end(params, "delete"),
  async onEnvironmentRealizeWorkspace(params) {
    const cwd = params.lease.metadata?.remoteCwd ?? params.workspace.remotePath;
    await (await sandboxOf(params)).fs.createFolder(cwd, "755");
    return { cwd };
  },
  onEnvironmentExecute: execute,
  onEnvironmentSyncIn: (params) => carry(params, upload),
  onEnvironmentSyncOut: (params) => carry(params, download),
});

export default plugin;
runWorker(plugin, import.meta.url);
