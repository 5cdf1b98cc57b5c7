#pragma once

#include "keeper/protocol/messages.hpp"
#include "places/ssh/scripts.hpp"

// The scripts that hold commands on hosts where a keeper cannot run. Each command has a folder
// `sh-ID` in its lease's folder:
//
//   in        the command's input: a file or a pipe
//   out, err  its output
//   group     its process group; supervisor, watcher: the processes that wait for it and end it
//   started   it runs; refused: why it does not
//   eof, stop requests to the supervisor
//   exit      how it ended: cause, status, and start and end in seconds
namespace berth::places::ssh {

std::string command_folder(const LeasePaths& lease, const std::string& exec_id);

// Starts the command and its supervisor, unless it was started before. The text contains the
// command's environment, so it must be wiped after use.
std::string launch_script(const LeasePaths& lease, const keeper::Exec& exec);
// Facts: pid and at (seconds), or refused.
std::string launched_script(const LeasePaths& lease, const std::string& exec_id);
// Writes stdin to a file, completely or not at all.
std::string input_script(const LeasePaths& lease, const std::string& exec_id);
// Passes stdin to the command.
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
// Facts: state, out and err (sizes), limit; then, after a line `#`, bytes of out and of err.
std::string poll_script(const LeasePaths& lease, const std::string& exec_id, ShellOffset from,
                        std::size_t bytes_max);

}  // namespace berth::places::ssh
