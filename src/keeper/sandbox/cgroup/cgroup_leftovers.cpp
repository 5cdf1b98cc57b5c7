#include "base/files.hpp"
#include "base/text.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/protocol.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace berth::keeper::sandbox {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view prefix = "berth-";
constexpr std::size_t leftovers_file_bytes_max = std::size_t{4} << 20;

// The process that made a group. The pid alone may be reused, and a process in another pid
// namespace cannot check it.
struct Maker {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t pid_namespace = 0;
};

std::uint64_t own_pid_namespace() {
  struct stat file{};
  return ::stat("/proc/self/ns/pid", &file) == 0 ? file.st_ino : 0;
}

// "berth-ID.PID-TICKS-NAMESPACE"
std::optional<Maker> maker_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (!name.starts_with(prefix) || dot == std::string_view::npos) return std::nullopt;
  Maker maker;
  const char* at = name.data() + dot + 1;
  const char* const end = name.data() + name.size();
  const auto take = [&](auto& number, char after) {
    const auto parsed = std::from_chars(at, end, number);
    const bool good = parsed.ec == std::errc{} &&
                      (after == 0 ? parsed.ptr == end : parsed.ptr < end && *parsed.ptr == after);
    at = parsed.ptr + (good && after != 0 ? 1 : 0);
    return good;
  };
  if (!take(maker.pid, '-') || !take(maker.start_ticks, '-') || !take(maker.pid_namespace, 0)) {
    return std::nullopt;
  }
  return maker;
}

bool is_gone(const Maker& maker) {
  if (maker.pid_namespace != own_pid_namespace()) return false;
  const auto now = process_stat(maker.pid);
  if (!now || now->start_ticks != maker.start_ticks) return true;
  // It has ended, and its parent has not reaped it.
  return now->state == 'Z' || now->state == 'X';
}

std::vector<std::string> bases_of(const CgroupLayout& layout) {
  std::vector<std::string> bases;
  if (!layout.unified.empty()) bases.push_back(layout.unified);
  for (const std::string& base : layout.legacy) {
    if (!base.empty()) bases.push_back(base);
  }
  std::ranges::sort(bases);
  bases.erase(std::ranges::unique(bases).begin(), bases.end());
  return bases;
}

}  // namespace

Result<std::string> group_name(std::string_view id) {
  if (!is_exec_id(id)) {
    return fail(Errc::validation_failed, in_quotes(id) + " is not a group id",
                "use up to 64 letters, digits, '.', '_' and '-'");
  }
  const pid_t self = ::getpid();
  const auto stat = process_stat(self);
  if (!stat) return fail(Errc::io_failed, "/proc does not show this process");
  return std::string{prefix} + std::string{id} + "." + std::to_string(self) + "-" +
         std::to_string(stat->start_ticks) + "-" + std::to_string(own_pid_namespace());
}

Cgroup Cgroup::adopt(const CgroupLayout& layout, const std::string& name) {
  Cgroup group;
  group.name_ = name;
  const auto take = [&](const std::string& base) {
    std::string folder = base + "/" + name;
    if (base.empty() || ::access(folder.c_str(), F_OK) != 0) return std::string{};
    const auto is_taken = [&](const GroupFolder& owned) { return owned.get() == folder; };
    if (std::ranges::none_of(group.owned_, is_taken)) group.owned_.emplace_back(folder);
    return folder;
  };
  group.unified_ = take(layout.unified);
  for (std::size_t i = 0; i < controller_count; ++i) {
    group.folders_[i] = take(layout.legacy[i]);
  }
  group.open_doors();
  return group;
}

std::vector<std::string> find_leftovers(const CgroupLayout& layout) {
  std::vector<std::string> found;
  for (const std::string& base : bases_of(layout)) {
    for (std::string& name : names_in(base).value_or(std::vector<std::string>{})) {
      const auto maker = maker_of(name);
      if (maker && is_gone(*maker)) found.push_back(std::move(name));
    }
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

std::vector<std::string> sweep_leftovers(const CgroupLayout& layout) {
  std::vector<std::string> stuck;
  for (const std::string& name : find_leftovers(layout)) {
    Cgroup group = Cgroup::adopt(layout, name);
    if (!group.kill(2s) || !group.remove(2s)) stuck.push_back(name);
  }
  return stuck;
}

std::vector<std::string> sweep_noted_leftovers(std::string_view note) {
  if (note.empty()) return {};
  return sweep_leftovers(
      noted_layout(note, read_file("/proc/self/mountinfo", leftovers_file_bytes_max).value_or("")));
}

}  // namespace berth::keeper::sandbox
