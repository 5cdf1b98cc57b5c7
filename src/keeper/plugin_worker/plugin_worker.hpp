#pragma once

#include "base/result.hpp"
#include "keeper/plugin_worker/plugin_box.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// `berth-keeper plugin`: the parent of one plugin's worker. It stands between the server and a
// program that nobody vouches for, so that all processes of it end with the worker, and with the
// server.
namespace berth::keeper {

struct PluginWorker {
  uid_t uid = 0;
  gid_t gid = 0;
  // Of private memory each process; where there are control groups, of any memory all of them.
  std::uint64_t memory_bytes_max = 0;
  std::optional<PluginBox> box = {};  // absent: for programs of the operator, which fetch packages
  std::span<char*> argv = {};         // ended by a null pointer behind it
};

// The beginning of its last line on standard error when the kernel has killed for want of memory.
inline constexpr std::string_view out_of_memory_mark = "berth-keeper: out of memory: ";

// From `UID GID MEMORY_BYTES [box OPTION...] -- PROGRAM [ARG...]`.
Result<PluginWorker> parse_plugin_worker(std::span<char*> words);

// Executes the program with this process's standard streams, waits for its end, and ends as it did.
// SIGTERM is passed on to it; SIGHUP, and the end of whoever started this, kill the whole tree.
[[noreturn]] void run_plugin_worker(const PluginWorker& worker);

}  // namespace berth::keeper
