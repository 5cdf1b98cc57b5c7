#include "images/store_folder.hpp"

#include "base/files.hpp"
#include "base/random.hpp"
#include "base/remove_tree.hpp"
#include "base/text.hpp"
#include "files/beneath.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

namespace berth::images {
namespace {

constexpr auto lock_limit = std::chrono::seconds{30};
constexpr int lock_pause_ms = 5;
constexpr std::size_t holder_bytes_max = 128;
constexpr int store_folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::string fresh_name(std::string_view prefix) {
  SystemRandom random;
  return std::string{prefix} + random_base64url(random, 12);
}

Result<> sync_folder(const std::string& path) {
  const Fd folder{::open(path.c_str(), store_folder_flags)};
  if (!folder || ::fsync(folder.get()) != 0) return files::store_failure("save", path, errno);
  return {};
}

bool is_holder(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= holder_bytes_max && text.front() != '.' &&
         std::ranges::all_of(text, fits);
}

}  // namespace

void FolderKind::dispose(const Raw& path) noexcept {
  // What remains is an unlocked draft, which the next sweep removes.
  [[maybe_unused]] const Result<> removed = remove_tree(path);
}

std::string describe_holder(const std::string& holder) {
  if (!holder.starts_with(template_holder_prefix)) return "sandbox " + holder;
  return "template " + holder.substr(template_holder_prefix.size());
}

Result<StoreFolder> StoreFolder::open(std::string path, std::string things) {
  StoreFolder folder{std::move(path), std::move(things)};
  BERTH_DO(make_directories(folder.things(), 0700));
  BERTH_DO(make_directories(folder.drafts(), 0700));
  return folder;
}

Result<std::vector<std::string>> StoreFolder::names() const {
  return names_in(things());
}

bool StoreFolder::contains(std::string_view thing) const {
  return ::access(place_of(thing).c_str(), F_OK) == 0;
}

Result<Fd> StoreFolder::lock() const {
  const std::string file = path_ + "/lock";
  Fd lock{::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!lock) return files::store_failure("open", file, errno);
  // The kernel has no lock with a timeout, and this one is held only briefly.
  const auto deadline = std::chrono::steady_clock::now() + lock_limit;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return files::store_failure("lock", file, errno);
    if (std::chrono::steady_clock::now() > deadline) {
      return fail(Errc::conflict, file + ": another process does not let go of it",
                  "see who has it: fuser " + file);
    }
    ::poll(nullptr, 0, lock_pause_ms);
  }
  return lock;
}

// Under the lock, so that no sweep sees the folder before it is locked.
Result<Draft> StoreFolder::make_draft() const {
  BERTH_TRY(const Fd held, lock());
  const std::string path = drafts() + "/" + fresh_name("draft-");
  if (::mkdir(path.c_str(), 0700) != 0) return files::store_failure("make folder", path, errno);
  Draft draft{.folder = {}, .path = Owned<FolderKind>{path}};
  draft.folder = Fd{::open(path.c_str(), store_folder_flags)};
  if (!draft.folder || ::flock(draft.folder.get(), LOCK_EX | LOCK_NB) != 0) {
    return files::store_failure("lock", path, errno);
  }
  return draft;
}

Result<> StoreFolder::make_durable(const Draft& draft) const {
  // One call for thousands of files. Like fsync, it reports what could not be written.
  if (::syncfs(draft.folder.get()) != 0)
    return files::store_failure("save", draft.path.get(), errno);
  return {};
}

Result<> StoreFolder::publish(Draft draft, std::string_view thing) const {
  const std::string place = place_of(thing);
  if (std::rename(draft.path.get().c_str(), place.c_str()) != 0) {
    return files::store_failure("save", place, errno);
  }
  static_cast<void>(draft.path.release());
  return sync_folder(things());
}

Result<Draft> StoreFolder::retire(std::string_view thing) const {
  const std::string place = place_of(thing);
  Fd folder{::open(place.c_str(), store_folder_flags)};
  if (!folder) return files::store_failure("open", place, errno);
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Errc::image_in_use, std::string{thing} + " is in use by a process of this machine",
                "wait until it has ended");
  }
  const std::string path = drafts() + "/" + fresh_name("removed-");
  if (std::rename(place.c_str(), path.c_str()) != 0)
    return files::store_failure("remove", place, errno);
  BERTH_DO(sync_folder(things()));
  return Draft{.folder = std::move(folder), .path = Owned<FolderKind>{path}};
}

Result<std::uint64_t> StoreFolder::sweep() const {
  std::vector<Draft> stale;
  {
    BERTH_TRY(const Fd held, lock());
    BERTH_TRY(const std::vector<std::string> found, names_in(drafts()));
    for (const std::string& name : found) {
      const std::string path = drafts() + "/" + name;
      Fd folder{::open(path.c_str(), store_folder_flags)};
      if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
      stale.push_back({.folder = std::move(folder), .path = Owned<FolderKind>{path}});
    }
  }
  for (const Draft& draft : stale) BERTH_DO(remove_tree(draft.path.get()));
  return stale.size();
}

Result<> StoreFolder::hold(std::string_view thing, const std::string& holder) const {
  if (!is_holder(holder)) {
    return fail(Errc::validation_failed, in_quotes(holder) + " is not the name of a holder");
  }
  BERTH_DO(make_directories(holds_of(thing), 0700));
  return replace_file(holds_of(thing) + "/" + holder, "", 0600);
}

Result<> StoreFolder::release(std::string_view thing, const std::string& holder) const {
  if (!is_holder(holder)) {
    return fail(Errc::validation_failed, in_quotes(holder) + " is not the name of a holder");
  }
  const std::string file = holds_of(thing) + "/" + holder;
  if (::unlink(file.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR) {
    return files::store_failure("remove", file, errno);
  }
  return {};
}

std::vector<std::string> StoreFolder::holders(std::string_view thing) const {
  return names_in(holds_of(thing)).value_or(std::vector<std::string>{});
}

Result<Fd> StoreFolder::pin(std::string_view thing) const {
  const std::string place = place_of(thing);
  Fd folder{::open(place.c_str(), store_folder_flags)};
  if (!folder || ::flock(folder.get(), LOCK_SH | LOCK_NB) != 0) {
    return files::store_failure("pin", place, errno);
  }
  return folder;
}

}  // namespace berth::images
