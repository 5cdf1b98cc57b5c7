#include "cli/plugin_skeleton.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <string_view>

namespace berth::cli {
namespace {

constexpr std::string_view cpp_build = R"file(cmake_minimum_required(VERSION 3.25)
project(@NAME@ VERSION 0.1.0 LANGUAGES CXX)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# Where the C++ SDK of Berth is: the folder sdk/cpp of its source tree.
set(BERTH_SDK "@SDK@" CACHE PATH "the C++ SDK of Berth")
set(BERTH "@BERTH@" CACHE FILEPATH "the berth program, for the test")

add_subdirectory(${BERTH_SDK} berth-sdk EXCLUDE_FROM_ALL)
# The folder plugin/ of the build is what is installed: the program and its manifest.
berth_plugin(@NAME@ SOURCES provider.cpp FOLDER ${CMAKE_BINARY_DIR}/plugin)

enable_testing()
add_test(NAME conformance COMMAND ${BERTH} plugin test ${CMAKE_BINARY_DIR}/plugin)
)file";

constexpr std::string_view cpp_provider = R"file(#include <base/files.hpp>
#include <base/random.hpp>
#include <base/remove_tree.hpp>
#include <sdk/provider.hpp>

// @NAME@: sandboxes are folders of this machine. Replace what is between acquire_lease and
// execute by calls of the service that you bring; the rest stays.
namespace @IDENTIFIER@ {

namespace bj = boost::json;
namespace sdk = berth::sdk;
using berth::Errc;
using berth::fail;
using berth::Result;

// What an environment says about this provider. The form, its defaults and the checks come from here.
struct Config {
  std::string image = "default";
  double timeout_ms = 300'000;
  // std::optional<berth::Secret> api_key;  // a secret field: its value is there only in a call

  static sdk::Notes<Config> notes() {
    return {{&Config::image, {.title = "Image"}},
            {&Config::timeout_ms,
             {.title = "Time limit", .unit = "ms", .low = 1, .high = 86'400'000}}};
  }
};
BOOST_DESCRIBE_STRUCT(Config, (), (image, timeout_ms))

class Provider {
 public:
  using Config = @IDENTIFIER@::Config;

  static sdk::About about() {
    return {.id = "@NAME@",
            .version = "0.1.0",
            .display_name = "@NAME@",
            .description = "Sandboxes of @NAME@.",
            .author = "me",
            .driver_key = "@NAME@",
            .driver = {{"sandboxCapabilities",
                        bj::object{{"incrementalSessionOutput", true}}}}};
  }

  Result<sdk::Probed> probe(sdk::Call&, const Config& config, const sdk::Probe&) {
    return sdk::Probed{.summary = "@NAME@ is ready for image " + config.image + "."};
  }

  // The sandbox is named after its run: a host that lost the answer asks again and gets it.
  Result<sdk::Lease> acquire_lease(sdk::Call& call, const Config&,
                                   const sdk::AcquireLease& request) {
    BERTH_TRY(const std::string folder, folder_of(request.run_id));
    BERTH_DO(berth::make_directories(folder, 0700));
    call.log(sdk::Level::info, "sandbox acquired", {{"lease", request.run_id}});
    return sdk::Lease{.provider_lease_id = request.run_id,
                      .metadata = bj::object{{"remoteCwd", folder}}};
  }

  Result<> release_lease(sdk::Call& call, const Config& config, const sdk::EndLease& request) {
    return destroy_lease(call, config, request);
  }

  // What is gone already is fine: hosts repeat what they have no answer to.
  Result<> destroy_lease(sdk::Call&, const Config&, const sdk::EndLease& request) {
    if (!request.provider_lease_id) return {};
    BERTH_TRY(const std::string folder, folder_of(*request.provider_lease_id));
    return berth::remove_tree(folder);
  }

  Result<sdk::Workspace> realize_workspace(sdk::Call&, const Config&,
                                           const sdk::RealizeWorkspace& request) {
    BERTH_TRY(const std::string folder, folder_of(request.lease.provider_lease_id.value_or("")));
    BERTH_DO(berth::make_directories(folder, 0700));
    return sdk::Workspace{.cwd = folder};
  }

  Result<sdk::Executed> execute(sdk::Call& call, const Config& config,
                                const sdk::Execute& request) {
    BERTH_TRY(const std::string folder, folder_of(request.lease.provider_lease_id.value_or("")));
    sdk::LocalCommand command{.argv = {request.command},
                              .cwd = request.cwd.value_or(folder),
                              .stdin_ = request.stdin_,
                              .timeout_ms = request.timeout_ms.value_or(config.timeout_ms)};
    if (request.args) {
      command.argv.insert(command.argv.end(), request.args->begin(), request.args->end());
    }
    if (request.env) command.environment = *request.env;
    command.environment.try_emplace("PATH", "/usr/local/bin:/usr/bin:/bin");
    return sdk::run_local(command, call);
  }

 private:
  // An id comes from outside, so it is encoded before it becomes part of a path.
  static Result<std::string> folder_of(const std::string& id) {
    if (id.empty() || id.size() > 128) {
      return fail(Errc::validation_failed, "the lease has no id that was made here");
    }
    const auto* bytes = reinterpret_cast<const unsigned char*>(id.data());
    return "/tmp/@NAME@-" + berth::base64url({bytes, id.size()});
  }
};

}  // namespace @IDENTIFIER@

int main(int argc, char** argv) {
  return berth::sdk::serve<@IDENTIFIER@::Provider>(argc, argv);
}
)file";

constexpr std::string_view cpp_readme = R"file(# @NAME@

A sandbox provider for Berth. Its code is `provider.cpp`; the manifest is made from it.

    cmake -B build -DCMAKE_CXX_COMPILER=clang++-19
    cmake --build build
    ctest --test-dir build --output-on-failure
    berth plugin install ./build/plugin
)file";

constexpr std::string_view js_manifest = R"file({
  "id": "@NAME@",
  "apiVersion": 1,
  "version": "0.1.0",
  "displayName": "@NAME@",
  "description": "Sandboxes of @NAME@.",
  "author": "me",
  "categories": ["automation"],
  "capabilities": ["environment.drivers.register"],
  "entrypoints": { "worker": "./worker.mjs" },
  "environmentDrivers": [
    {
      "driverKey": "@NAME@",
      "kind": "sandbox_provider",
      "displayName": "@NAME@",
      "configSchema": {
        "type": "object",
        "properties": {
          "image": { "type": "string", "title": "Image", "default": "default" },
          "timeoutMs": { "type": "integer", "title": "Time limit (ms)", "default": 300000, "minimum": 1 }
        }
      },
      "sandboxCapabilities": { "incrementalSessionOutput": true }
    }
  ]
}
)file";

constexpr std::string_view js_worker = R"file(import { spawn } from "node:child_process";
import { Buffer } from "node:buffer";
import fs from "node:fs";
import readline from "node:readline";

// @NAME@: sandboxes are folders of this machine. Replace what is between acquireLease and execute by
// calls of the service that you bring; the rest stays.

const folderOf = (id) => {
  if (typeof id !== "string" || id === "" || id.length > 128) throw new Error("the lease has no id that was made here");
  return "/tmp/@NAME@-" + Buffer.from(id).toString("base64url");
};

const killGroup = (pid, signal) => {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
};

// Commands have a mark in the folder of their sandbox, so that a worker that was killed finds them.
const marks = (id) => folderOf(id) + "-running";

function execute({ config, lease, command, args = [], cwd, env = {}, stdin, timeoutMs }, invocation) {
  const id = lease.providerLeaseId;
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: cwd ?? folderOf(id),
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", ...env },
      detached: true, // a group of its own, to be ended as one
      stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    child.on("error", reject);
    if (child.pid === undefined) return;
    const mark = `${marks(id)}/${child.pid}`;
    fs.mkdirSync(marks(id), { recursive: true });
    fs.writeFileSync(mark, "");
    const output = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"]) {
      child[stream].setEncoding("utf8");
      child[stream].on("data", (chunk) => {
        output[stream] += chunk;
        send({ method: "execute.log", params: { stream, chunk }, paperclipInvocationId: invocation });
      });
    }
    if (stdin !== undefined) {
      child.stdin.on("error", () => {}); // a command need not read its input
      child.stdin.end(stdin);
    }
    let timedOut = false;
    const limit = timeoutMs ?? config.timeoutMs ?? 300000;
    const timers = [];
    if (limit > 0) {
      timers.push(setTimeout(() => {
        timedOut = true;
        killGroup(child.pid, "SIGTERM");
        timers.push(setTimeout(() => killGroup(child.pid, "SIGKILL"), 250));
      }, limit));
    }
    child.on("exit", () => killGroup(child.pid, "SIGKILL")); // what it left in the background
    child.on("close", (code, signal) => {
      timers.forEach(clearTimeout);
      fs.rmSync(mark, { force: true });
      resolve({ exitCode: timedOut ? null : code, signal, timedOut, ...output });
    });
  });
}

function destroy({ providerLeaseId: id }) {
  if (id === null) return null;
  if (fs.existsSync(marks(id))) {
    for (const pid of fs.readdirSync(marks(id))) killGroup(Number(pid), "SIGKILL");
  }
  fs.rmSync(marks(id), { recursive: true, force: true });
  fs.rmSync(folderOf(id), { recursive: true, force: true });
  return null;
}

const hooks = {
  environmentValidateConfig({ config }) {
    const { image = "default", timeoutMs = 300000 } = config;
    const errors = [];
    if (typeof image !== "string") errors.push("image is not a string");
    if (typeof timeoutMs !== "number") errors.push("timeoutMs is not a number");
    return errors.length ? { ok: false, errors } : { ok: true, normalizedConfig: { image, timeoutMs } };
  },
  environmentProbe: ({ config }) => ({ ok: true, summary: `@NAME@ is ready for image ${config.image ?? "default"}.` }),
  // The sandbox is named after its run: a host that lost the answer asks again and gets it.
  environmentAcquireLease({ runId }) {
    fs.mkdirSync(folderOf(runId), { recursive: true, mode: 0o700 });
    return { providerLeaseId: runId, metadata: { remoteCwd: folderOf(runId) } };
  },
  environmentReleaseLease: destroy,
  environmentDestroyLease: destroy,
  environmentRealizeWorkspace({ lease }) {
    const cwd = folderOf(lease.providerLeaseId);
    fs.mkdirSync(cwd, { recursive: true, mode: 0o700 });
    return { cwd };
  },
  environmentExecute: execute,
};

// The rest is the protocol: JSON-RPC 2.0, one object a line.
const known = ["environmentResumeLease", "environmentSyncIn", "environmentSyncOut", "environmentStartInteractiveSetup",
  "environmentGetInteractiveSetup", "environmentCaptureTemplate", "environmentCancelInteractiveSetup",
  "environmentDeleteTemplate", "handleWebhook", "runJob", "getData", "performAction", "executeTool", "validateConfig",
  "onEvent", "handleApiRequest", "loginPtyOpen", "duplexChannelOpen"];
let initialized = false;
const own = {
  initialize() {
    if (initialized) throw new Error("Worker already initialized");
    initialized = true;
    return { ok: true, supportedMethods: Object.keys(hooks) };
  },
  health: () => ({ status: "ok" }),
  configChanged: () => null,
  shutdown: () => null,
};

function send(message) {
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
}

function refusal(method) {
  return known.includes(method)
    ? { code: -32004, message: `${method} is not implemented by this plugin` }
    : { code: -32601, message: `Unknown method: ${method}` };
}

async function answer({ id, method, params, paperclipInvocation }) {
  const hook = own[method] ?? hooks[method];
  if (!hook) return send({ id, error: refusal(method) });
  try {
    send({ id, result: (await hook(params, paperclipInvocation?.id)) ?? null });
  } catch (error) {
    send({ id, error: { code: -32002, message: error.message } });
  }
  if (method === "shutdown") process.exit(0);
}

readline.createInterface({ input: process.stdin, crlfDelay: Infinity }).on("line", (line) => {
  if (line.trim() === "") return;
  let message = null;
  try {
    message = JSON.parse(line);
  } catch { /* answered below */ }
  if (message?.jsonrpc !== "2.0") return send({ id: null, error: { code: -32700, message: "no JSON-RPC 2.0" } });
  const isRequest = typeof message.method === "string" && message.id !== undefined && message.id !== null;
  if (isRequest && !("result" in message) && !("error" in message)) answer(message);
}).on("close", () => process.exit(0));
)file";

constexpr std::string_view js_readme = R"file(# @NAME@

A sandbox provider for Berth in JavaScript, without a build: `worker.mjs` and `manifest.json`.

    berth plugin test .
    berth plugin install .
)file";

// Replaces "@NAME@" and the like.
std::string filled(std::string_view text, const SkeletonOptions& wanted) {
  std::string identifier = wanted.name;
  std::ranges::replace_if(identifier, [](char c) { return c == '-' || c == '.'; }, '_');
  if (identifier.front() >= '0' && identifier.front() <= '9') identifier.insert(0, 1, '_');
  std::string out{text};
  for (const auto& [mark, value] : {std::pair{std::string_view{"@NAME@"}, wanted.name},
                                    std::pair{std::string_view{"@IDENTIFIER@"}, identifier},
                                    std::pair{std::string_view{"@SDK@"}, wanted.sdk},
                                    std::pair{std::string_view{"@BERTH@"}, wanted.berth}}) {
    for (std::size_t at = out.find(mark); at != std::string::npos;
         at = out.find(mark, at + value.size())) {
      out.replace(at, mark.size(), value);
    }
  }
  return out;
}

bool is_plugin_name(std::string_view name) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto fits = [&](char c) { return is_plain(c) || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= 64 && is_plain(name.front()) &&
         std::ranges::all_of(name, fits);
}

}  // namespace

Result<std::vector<SkeletonFile>> plugin_skeleton(const SkeletonOptions& wanted) {
  if (!is_plugin_name(wanted.name)) {
    return fail(Errc::bad_request, in_quotes(wanted.name) + " is not a plugin name",
                "use lower-case letters, digits, '.', '_' and '-', for example acme-sandbox");
  }
  if (wanted.language == PluginLanguage::js) {
    return std::vector<SkeletonFile>{{"manifest.json", filled(js_manifest, wanted)},
                                     {"worker.mjs", filled(js_worker, wanted)},
                                     {"README.md", filled(js_readme, wanted)}};
  }
  return std::vector<SkeletonFile>{{"CMakeLists.txt", filled(cpp_build, wanted)},
                                   {"provider.cpp", filled(cpp_provider, wanted)},
                                   {"README.md", filled(cpp_readme, wanted)}};
}

}  // namespace berth::cli
