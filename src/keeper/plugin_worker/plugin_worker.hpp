#pragma once

#include "base/result.hpp"
#include "keeper/plugin_worker/plugin_box.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// `berth-keeper plugin`: the parent of one plugin's worker. It stands between the server and an
// untrusted program, so that all of that program's processes end with the worker and with the
// server.
namespace berth::keeper {

struct PluginWorker {
  uid_t uid = 0;
  gid_t gid = 0;
  // Limits each process's private memory and, with control groups, the total memory of all of them.
  std::uint64_t memory_bytes_max = 0;
  std::optional<PluginBox> box = {};  // absent: operator programs, which fetch packages
  std::span<char*> argv = {};         // followed by a null pointer
};

// How its last line on standard error begins after the kernel killed for lack of memory.
inline constexpr std::string_view out_of_memory_mark = "berth-keeper: out of memory: ";

// Parses `UID GID MEMORY_BYTES [box OPTION...] -- PROGRAM [ARG...]`.
Result<PluginWorker> parse_plugin_worker(std::span<char*> words);

// Executes the program with this process's standard streams, waits for its end, and ends the same
// way. SIGTERM is passed on to it. SIGHUP, and the end of the parent process, kill the whole tree.
[[noreturn]] void run_plugin_worker(const PluginWorker& worker);

}  // namespace berth::keeper
