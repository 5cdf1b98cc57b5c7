#pragma once

#include "base/result.hpp"
#include "keeper/plugin_worker/plugin_box.hpp"
#include "plugins/manifest/manifest.hpp"

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace berth::plugins {

// The user a worker runs as when the server is root.
struct WorkerUser {
  uid_t uid = 0;
  gid_t gid = 0;
};

// How plugin programs are started: always through the keeper, never as root.
struct Launching {
  std::string keeper_program;           // berth-keeper, absolute
  std::optional<WorkerUser> user = {};  // absent: the server's own user, which then is not root
  std::int64_t memory_bytes_max = std::int64_t{2} << 30;  // private memory of each process
  std::string path = "/usr/local/bin:/usr/bin:/bin";  // where node is, for manifests in JavaScript
  // What the program sees and reaches. Absent only for operator programs that fetch packages.
  std::optional<keeper::PluginBox> box = {};
};

// What to execute for a plugin.
struct WorkerCommand {
  std::vector<std::string> argv;
  std::string folder = "/";                             // where it starts
  std::map<std::string, std::string> environment = {};  // complete: nothing is inherited
};

// A package's origin decides which host credentials it may see.
enum class PackageOrigin { registry, bundled, folder };

struct Package {
  std::string folder;     // absolute: where package.json or manifest.json is
  std::string name = {};  // of the npm package; empty: not one
  PackageOrigin origin = PackageOrigin::folder;
};

// The server's own environment, given by `app`, to decide which variables are passed through.
using HostEnvironment = std::map<std::string, std::string>;

// A worker's variables: the fixed ones, and the host variables that the manifest is entitled to.
std::map<std::string, std::string> worker_environment(const Manifest& manifest,
                                                      const Package& package,
                                                      const std::string& plugin_id,
                                                      const HostEnvironment& host);

// `node <worker.js>` for JavaScript, the file itself for a native executable. Fails with
// plugin_unavailable when the file is not in the package, or when Node is needed and not on the
// host's PATH.
Result<WorkerCommand> worker_command(const Manifest& manifest, const Package& package,
                                     const std::string& plugin_id, const HostEnvironment& host);

// The folders that the command's program is read from: its package, the modules beside it, and its
// interpreter if that lies outside /usr. No folder that contains `hidden` is among them.
std::vector<std::string> program_folders(const WorkerCommand& command, const Package& package,
                                         const std::string& hidden);

// The program with that name on PATH, if any.
std::optional<std::string> find_program(const std::string& path, const std::string& name);

}  // namespace berth::plugins
