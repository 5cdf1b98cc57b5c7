#include "app/work_folder.hpp"

#include "base/files.hpp"
#include "base/log.hpp"
#include "base/remove_tree.hpp"
#include "keepers/kept_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace berth::app {
namespace {

constexpr std::string_view name_start = "berth-run-";
constexpr int attempts_max = 10;

// Empty when another process holds it, when it is not ours, or when it no longer exists.
Fd locked(const std::string& path) {
  Fd folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  struct stat seen{};
  if (!folder || ::fstat(folder.get(), &seen) != 0 || seen.st_uid != ::geteuid()) return {};
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return {};
  if (::fstat(folder.get(), &seen) != 0 || seen.st_nlink == 0) return {};
  return folder;
}

// A keeper outlives the process that started it until its hold has expired.
bool has_keeper(const std::string& path) {
  const auto lives = [&](const std::string& name) {
    const keepers::KeptFolder kept{.path = path + "/" + name};
    const Result<keeper::FoundKeeper> found = keeper::look_at_keeper(kept.keeper());
    return found && found->life == keeper::Life::alive;
  };
  const Result<std::vector<std::string>> names = names_in(path);
  return !names || std::ranges::any_of(*names, lives);
}

// Removes what this user's killed processes have left.
void sweep(const std::string& parent) {
  const Result<std::vector<std::string>> names = names_in(parent);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(name_start)) continue;
    const std::string path = parent + "/" + name;
    const Fd lock = locked(path);
    if (!lock || has_keeper(path)) continue;
    const Result<> removed = remove_tree(path);
    if (!removed) log::warn("sandbox.folder_left", {{"error", removed.error().message}});
  }
}

}  // namespace

Result<WorkFolder> WorkFolder::make(const cli::Console& console) {
  const auto runtime = console.variables.find("XDG_RUNTIME_DIR");
  const bool has_runtime =
      runtime != console.variables.end() && ::access(runtime->second.c_str(), W_OK | X_OK) == 0;
  const std::string parent = has_runtime ? runtime->second : std::string{"/tmp"};
  sweep(parent);
  // Another process's sweep may come between creating a folder and locking it.
  for (int attempt = 1;; ++attempt) {
    std::string path = parent + "/" + std::string{name_start} + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return io_failure("make a folder as", path, errno);
    if (Fd lock = locked(path)) return WorkFolder{std::move(path), std::move(lock)};
    if (attempt == attempts_max) return io_failure("lock", path, EBUSY);
  }
}

WorkFolder::~WorkFolder() {
  if (path_.empty()) return;
  const Result<> removed = remove_tree(path_);
  if (!removed) log::warn("sandbox.folder_left", {{"error", removed.error().message}});
}

}  // namespace berth::app
