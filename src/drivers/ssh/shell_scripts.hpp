#pragma once

#include "drivers/ssh/scripts.hpp"
#include "keeper/protocol/messages.hpp"

// The scripts by which commands are held on hosts where a keeper cannot run. Each command has a
// folder `sh-ID` in the folder of its lease:
//
//   in        what the command reads: a file or a pipe
//   out, err  what it has said
//   group     its process group; supervisor, watcher: who waits for it, and who ends it
//   started   it runs; refused: why it does not
//   eof, stop what is asked of the supervisor
//   exit      how it ended: cause, status, and the seconds of start and end
namespace berth::drivers::ssh {

std::string command_folder(const LeasePaths& lease, const std::string& exec_id);

// Starts the command unless it was started before, and its supervisor. It holds the environment of
// the command, so it is wiped after use.
std::string launch_script(const LeasePaths& lease, const keeper::Exec& exec);
// Facts: pid and at (seconds), or refused.
std::string launched_script(const LeasePaths& lease, const std::string& exec_id);
// Puts stdin into a file, whole or not at all.
std::string input_script(const LeasePaths& lease, const std::string& exec_id);
// Passes stdin on to the command.
std::string feed_script(const LeasePaths& lease, const std::string& exec_id);
std::string end_of_input_script(const LeasePaths& lease, const std::string& exec_id);
std::string signal_script(const LeasePaths& lease, const std::string& exec_id, int number);
std::string stop_script(const LeasePaths& lease, const std::string& exec_id, std::int64_t grace_ms);
std::string renew_script(const LeasePaths& lease, std::int64_t deadline_ms);

// How far a follower has read both streams, in one number that only grows.
struct ShellOffset {
  std::uint64_t out = 0;
  std::uint64_t err = 0;

  static constexpr std::uint64_t stream_bytes_max = (std::uint64_t{1} << 31) - 1;
  static ShellOffset unpack(std::uint64_t packed) {
    return {.out = packed >> 32, .err = packed & 0xffff'ffff};
  }
  std::uint64_t pack() const { return out << 32 | err; }
};
// Facts: state, out and err (sizes), limit; then, after a line of '#', bytes of out and of err.
std::string poll_script(const LeasePaths& lease, const std::string& exec_id, ShellOffset from,
                        std::size_t bytes_max);

}  // namespace berth::drivers::ssh
