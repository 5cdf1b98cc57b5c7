#include "engine/upkeep/home_disk.hpp"

#include "base/async/offload.hpp"
#include "base/files.hpp"
#include "base/id.hpp"
#include "base/remove_tree.hpp"
#include "base/text.hpp"
#include "files/walk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

namespace berth::engine {
namespace {

using files::Mounts;
using files::Walk;

constexpr std::size_t name_bytes_max = 64;
constexpr std::uint64_t session_files_max = 50'000;
constexpr std::int64_t block_bytes = 512;
constexpr std::string_view name_file = "/disk-id";
constexpr std::string_view session_prefix = "session-";
constexpr std::size_t path_bytes_max = 4096;
constexpr std::string_view home_in_sandbox = "/home/agent";  // where providers/linux mounts it

Result<std::string> disk_name(const std::string& folder, Random& random, Time now) {
  const std::string path = folder + std::string{name_file};
  Result<std::string> found = read_file(path, name_bytes_max);
  if (found && is_uuid(*found)) return found;
  const std::string made = make_uuid(random, now);
  BERTH_DO(replace_file(path, made, 0600));
  return made;
}

// Empty if there is no such folder.
Result<std::optional<Walk>> walk_below(const std::string& home, const std::string& path,
                                       files::Limits limits) {
  const Fd root{::open(home.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!root) {
    if (errno == ENOENT) return std::nullopt;
    return io_failure("open", home, errno);
  }
  const Fd folder{
      files::open_beneath(root.get(), path, O_PATH | O_DIRECTORY | O_NOFOLLOW, Mounts::refused)};
  if (!folder) return std::nullopt;
  BERTH_TRY(Walk walk, Walk::from(folder.get(), ".", Mounts::refused, limits));
  return std::optional{std::move(walk)};
}

Result<HomeSize> home_size(const std::string& home, std::int64_t files_max) {
  HomeSize size;
  auto begun = walk_below(home, ".", {.entries_max = static_cast<std::uint64_t>(files_max) + 1});
  const bool is_closed = begun ? !*begun && ::access(home.c_str(), F_OK) == 0
                               : begun.error().code == Errc::path_refused;
  if (is_closed) {
    size.hidden = "it is closed to the server";
    return size;
  }
  BERTH_TRY(auto walk, std::move(begun));
  if (!walk) return size;
  while (true) {
    BERTH_TRY(const auto item, walk->next());
    if (!item) return size;
    ++size.files;
    if (item->refusal && !size.hidden) size.hidden = clipped(item->refusal->message, 300);
    if (item->found.at) size.bytes += item->found.status.st_blocks * block_bytes;
    if (size.files <= files_max) continue;
    size.is_all = false;
    return size;
  }
}

// The home as its processes see it: in a sandbox it is mounted at one place, elsewhere it has its
// own path.
bool lives_in(const std::string& process, const struct stat& home) {
  struct stat seen{};
  const std::string inside = process + "/root" + std::string{home_in_sandbox};
  return ::stat(inside.c_str(), &seen) == 0 && seen.st_dev == home.st_dev &&
         seen.st_ino == home.st_ino;
}

// Files without a name take space as long as a process has them open or mapped. `seen` has the
// inodes that were counted.
std::int64_t nameless_bytes(const std::string& descriptors, const std::string& home, bool lives,
                            dev_t disk, std::set<ino_t>& seen) {
  std::int64_t bytes = 0;
  const Result<std::vector<std::string>> names = names_in(descriptors);
  if (!names) return 0;
  for (const std::string& name : *names) {
    const std::string path = descriptors + "/" + name;
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    if (found.st_nlink != 0 || found.st_dev != disk) continue;
    std::array<char, path_bytes_max> link{};
    const ssize_t size = ::readlink(path.c_str(), link.data(), link.size());
    const std::string_view target{link.data(),
                                  static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
    if (!lives && !target.starts_with(home + "/")) continue;
    if (seen.insert(found.st_ino).second) bytes += found.st_blocks * block_bytes;
  }
  return bytes;
}

std::int64_t deleted_bytes(const std::string& home) {
  struct stat found{};
  const Result<std::vector<std::string>> processes = names_in("/proc");
  if (!processes || ::stat(home.c_str(), &found) != 0) return 0;
  std::int64_t bytes = 0;
  std::set<ino_t> seen;
  for (const std::string& name : *processes) {
    if (name.front() < '0' || name.front() > '9') continue;
    const std::string process = "/proc/" + name;
    const bool lives = lives_in(process, found);
    bytes += nameless_bytes(process + "/fd", home, lives, found.st_dev, seen);
    // There are very many of these, so that only those of a sandbox are worth their time.
    if (lives) bytes += nameless_bytes(process + "/map_files", home, lives, found.st_dev, seen);
  }
  return bytes;
}

bool is_session_file(core::AdapterType adapter, const std::string& name,
                     const std::string& session) {
  if (adapter == core::AdapterType::claude_local) return name == session + ".jsonl";
  return name.starts_with("rollout-") && name.ends_with("-" + session + ".jsonl");
}

Result<bool> has_session(const std::string& home, core::AdapterType adapter,
                         const std::string& session) {
  const bool is_claude = adapter == core::AdapterType::claude_local;
  BERTH_TRY(auto walk, walk_below(home, is_claude ? ".claude/projects" : ".codex/sessions",
                                  {.entries_max = session_files_max + 1}));
  if (!walk) return false;
  for (std::uint64_t seen = 0; seen < session_files_max; ++seen) {
    BERTH_TRY(const auto item, walk->next());
    if (!item) return false;
    const bool is_file = item->found.at && S_ISREG(item->found.status.st_mode);
    if (is_file && is_session_file(adapter, item->name, session)) return true;
  }
  return true;  // it may be among so many files; the program will find out
}

}  // namespace

std::string size_text(std::int64_t bytes) {
  constexpr std::int64_t mebibyte = std::int64_t{1} << 20;
  return bytes < mebibyte ? std::to_string(bytes) + " bytes"
                          : std::to_string(bytes / mebibyte) + " MiB";
}

Result<HomeDisk> HomeDisk::open(std::string folder, Random& random, Time now) {
  BERTH_DO(make_directories(folder, 0700));
  BERTH_TRY(const std::string name, disk_name(folder, random, now));
  return HomeDisk{std::move(folder), "disk:" + name};
}

std::string HomeDisk::home_of(const core::AgentHomeId& id) const {
  return folder_ + "/" + id.str() + std::string{core::home_inside};
}

Task<HomeSize> HomeDisk::measure(core::AgentHomeId id, std::int64_t files_max) const {
  co_return co_await offload(*pool_, [home = home_of(id), files_max]() -> Result<HomeSize> {
    BERTH_TRY(HomeSize size, home_size(home, files_max));
    size.bytes += deleted_bytes(home);
    return size;
  });
}

Task<bool> HomeDisk::holds_session(core::AgentHomeId id, core::AdapterType adapter,
                                   std::string session) const {
  co_return co_await offload(*pool_, [home = home_of(id), adapter, session] {
    return has_session(home, adapter, session);
  });
}

Task<> HomeDisk::keep_session(core::AgentHomeId id, std::string session, KeptSession kept) const {
  const std::string around = folder_ + "/" + id.str();
  co_return co_await offload(*pool_, [around, session, kept = std::move(kept)]() -> Result<> {
    BERTH_DO(make_directories(around, 0700));
    const std::string name = std::string{session_prefix} + session;
    BERTH_DO(replace_file(around + "/" + name, kept.path + "\n" + kept.bytes, 0600));
    BERTH_TRY(const std::vector<std::string> names, names_in(around));
    for (const std::string& other : names) {
      if (!other.starts_with(session_prefix) || other == name) continue;
      BERTH_DO(remove_tree(around + "/" + other));
    }
    return {};
  });
}

Task<std::optional<HomeDisk::KeptSession>> HomeDisk::kept_session(core::AgentHomeId id,
                                                                  std::string session) const {
  using Kept = std::optional<KeptSession>;
  const std::string path = folder_ + "/" + id.str() + "/" + std::string{session_prefix} + session;
  co_return co_await offload(*pool_, [path]() -> Result<Kept> {
    const Result<std::string> text = read_file(path, session_bytes_max + path_bytes_max);
    if (!text) return Kept{};
    const std::size_t end = text->find('\n');
    if (end == std::string::npos) return Kept{};
    return Kept{{.path = text->substr(0, end), .bytes = text->substr(end + 1)}};
  });
}

Task<std::vector<core::AgentHomeId>> HomeDisk::list() const {
  using Ids = std::vector<core::AgentHomeId>;
  co_return co_await offload(*pool_, [folder = folder_]() -> Result<Ids> {
    BERTH_TRY(const std::vector<std::string> names, names_in(folder));
    Ids ids;
    for (const std::string& name : names) {
      if (auto id = core::AgentHomeId::parse(name)) ids.push_back(*std::move(id));
    }
    return ids;
  });
}

Task<> HomeDisk::remove(core::AgentHomeId id) const {
  co_return co_await offload(*pool_,
                             [path = folder_ + "/" + id.str()] { return remove_tree(path); });
}

}  // namespace berth::engine
