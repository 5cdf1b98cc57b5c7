import { spawn } from "node:child_process";
import { appendFileSync, existsSync } from "node:fs";
import { chmod, copyFile, cp, mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { definePlugin, runWorker } from "@paperclipai/plugin-sdk";

let context;
let boot;

// Everything is found again from the call's parameters, because a killed worker has forgotten the
// rest.
const idOf = (params) => params.providerLeaseId ?? params.lease?.providerLeaseId;
const folderOf = (params) =>
  path.join(params.config?.root ?? tmpdir(), `berth-compat-${idOf(params).split("//")[1]}`);
const groupsOf = (params) => `${folderOf(params)}.groups`;

// A command leads its own group, and everything it started ends with it.
function end(group) {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

async function destroy(params) {
  if (!idOf(params)) return;
  const groups = await readFile(groupsOf(params), "utf8").catch(() => "");
  groups.split("\n").filter(Boolean).map(Number).forEach(end);
  await rm(folderOf(params), { recursive: true, force: true });
  await rm(groupsOf(params), { force: true });
}

function execute(params) {
  return new Promise((resolve, reject) => {
    const child = spawn(params.command, params.args ?? [], {
      cwd: params.cwd ?? folderOf(params),
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", ...params.env },
      detached: true,
    });
    if (child.pid) appendFileSync(groupsOf(params), `${child.pid}\n`);
    let timedOut = false;
    const limit = params.timeoutMs
      ? setTimeout(() => { timedOut = true; end(child.pid); }, params.timeoutMs) : undefined;
    const out = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"]) {
      child[stream].setEncoding("utf8");
      child[stream].on("data", (chunk) => {
        out[stream] += chunk;
        context.execution?.log(stream, chunk);
      });
    }
    child.on("error", (error) => { clearTimeout(limit); reject(error); });
    child.on("close", (exitCode, signal) => {
      clearTimeout(limit);
      resolve({ exitCode: timedOut ? null : exitCode, signal, timedOut, ...out });
    });
    child.stdin.on("error", () => {});
    child.stdin.end(params.stdin ?? "");
  });
}

// Open routes, by the host's id.
const routes = new Map();

function close(params, more = () => ({})) {
  const route = routes.get(params.hostRouteId);
  routes.delete(params.hostRouteId);
  if (route?.child) end(route.child.pid);
  context.logger.info("compat has closed a route");
  return { hostRouteId: params.hostRouteId, ...more(route) };
}

// Both directions: a sandbox is a folder on the same machine. A file is replaced as a whole.
async function carry(params) {
  const operations = [];
  for (const { operationId, files } of params.operations) {
    let bytesTransferred = 0;
    for (const file of files) {
      if (file.kind === "directory") {
        await rm(file.targetPath, { recursive: true, force: true });
        await cp(file.sourcePath, file.targetPath, { recursive: true, verbatimSymlinks: true });
      } else {
        const scratch = path.join(path.dirname(file.targetPath), `.paperclip-upload-${operationId}`);
        await copyFile(file.sourcePath, scratch);
        if (file.mode !== undefined) await chmod(scratch, file.mode);
        await rename(scratch, file.targetPath);
        bytesTransferred += (await stat(file.targetPath)).size;
      }
    }
    operations.push({ operationId, filesTransferred: files.length, bytesTransferred });
  }
  return { operations };
}

// The login terminal, under each dialect's name for it. Its program is one word.
const login = {
  open: async (params) => {
    const say = (verb, ...what) => context.loginPty
      ? context.loginPty[verb](params.hostRouteId, "login", ...what)
      : context.setupTokenPty[verb]("login", ...what);
    routes.set(params.hostRouteId, { say });
    setTimeout(() => say("output", `login with ${params.loginCommandKey ?? params.command}\n`), 20);
    return { workerSessionId: "login" };
  },
  input: async ({ data }) => {
    const [{ say }] = routes.values();
    say("output", `token for ${data}\n`);
    say("exit", 0);
  },
  stop: async () => {},
  close: async (params) => close(params),
};

// A byte stream to a command; only the newer dialect has them.
const duplex = {
  open: async (params) => {
    const { hostRouteId, command: [program, ...args] } = params;
    const workerSessionId = `duplex-of-${hostRouteId}`;
    const child = spawn(program, args, { detached: true, stdio: ["pipe", "pipe", "inherit"] });
    child.stdin.on("error", () => {});
    child.stdout.on("data", (chunk) => context.duplexChannel.data(hostRouteId, workerSessionId, chunk));
    child.on("close", (code) => context.duplexChannel.exit(hostRouteId, workerSessionId, code, false));
    routes.set(hostRouteId, { child, workerSessionId });
    return { hostRouteId, workerSessionId };
  },
  write: async ({ hostRouteId, data }) => {
    routes.get(hostRouteId).child.stdin.write(Buffer.from(data, "base64"));
  },
  stop: async ({ hostRouteId }) => end(routes.get(hostRouteId).child.pid),
  close: async (params) => close(params, (route) => ({ workerSessionId: route?.workerSessionId })),
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
    const lease = { ...params, providerLeaseId: `compat://${params.runId}` };
    await mkdir(folderOf(lease), { recursive: true, mode: 0o700 });
    return { providerLeaseId: lease.providerLeaseId,
             metadata: { remoteCwd: folderOf(lease), separator: "\u2028" } };
  },
  onEnvironmentResumeLease: async (params) =>
    ({ providerLeaseId: existsSync(folderOf(params)) ? params.providerLeaseId : null }),
  onEnvironmentReleaseLease: destroy,
  onEnvironmentDestroyLease: destroy,
  onEnvironmentRealizeWorkspace: async (params) => ({ cwd: folderOf(params) }),
  onEnvironmentExecute: execute,
  onEnvironmentSyncIn: carry,
  onEnvironmentSyncOut: carry,
  onLoginPtyOpen: login.open,
  onLoginPtyInput: login.input,
  onLoginPtyStop: login.stop,
  onLoginPtyClose: login.close,
  onSetupTokenPtyOpen: login.open,
  onSetupTokenPtyInput: login.input,
  onSetupTokenPtyStop: login.stop,
  onSetupTokenPtyClose: login.close,
  onDuplexChannelOpen: duplex.open,
  onDuplexChannelWrite: duplex.write,
  onDuplexChannelStop: duplex.stop,
  onDuplexChannelClose: duplex.close,
});

export default plugin;
runWorker(plugin, import.meta.url);
