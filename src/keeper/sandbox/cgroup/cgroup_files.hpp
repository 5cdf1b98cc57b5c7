#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The files of a control group: small texts that the kernel generates on reading and applies on
// writing.
namespace berth::keeper::sandbox {

// Returns 0 or errno.
int write_group_file(const std::string& path, std::string_view text);
// Empty if there is no such file.
std::string read_group_file(const std::string& path);
// Empty for "max" and anything else that is not a number.
std::optional<std::uint64_t> number_in(std::string_view text);
std::optional<std::uint64_t> number_of(const std::string& path);
// For a file with lines `key number`.
std::optional<std::uint64_t> keyed_number(std::string_view text, std::string_view key);
// The sum over all devices. For a v2 file with lines `device key=number key=number`, and for a v1
// file with lines `device key number`.
std::uint64_t summed_number(std::string_view text, std::string_view key);
std::uint64_t summed_lines(std::string_view text, std::string_view key);

// Waits until `holds` returns true, checking in small steps or when the group reports a change.
// `events` is the descriptor of cgroup.events, or -1.
template <class Question>
bool wait_until(int events, std::chrono::milliseconds limit, Question&& holds);
// One such step: returns early if the group has changed.
void await_change(int events, std::chrono::milliseconds step);

// Removes a group and its child groups. Retries while the kernel releases their processes.
Result<> remove_group(const std::string& folder, std::chrono::milliseconds limit);

struct GroupFolderKind {
  using Raw = std::string;
  static Raw none() { return {}; }
  // The fallback for Cgroup::remove: never waits.
  static void dispose(const std::string& folder) noexcept;
};
using GroupFolder = Owned<GroupFolderKind>;
Result<GroupFolder> make_group_folder(std::string folder);

template <class Question>
bool wait_until(int events, std::chrono::milliseconds limit, Question&& holds) {
  using namespace std::chrono_literals;
  const auto until = std::chrono::steady_clock::now() + limit;
  for (auto step = 1ms; !holds(); step = std::min(step * 2, 64ms)) {
    if (std::chrono::steady_clock::now() >= until) return false;
    await_change(events, step);
  }
  return true;
}

}  // namespace berth::keeper::sandbox
