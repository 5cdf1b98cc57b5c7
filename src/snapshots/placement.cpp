#include "snapshots/placement.hpp"

#include "base/files.hpp"
#include "snapshots/beneath.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace berth::snapshots {
namespace {

std::string last_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string folder_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

bool is_there_no_more(const Error& error) {
  return error.code == Errc::file_not_found;
}

}  // namespace

bool is_same_content(const FileState& a, const FileState& b) {
  return a.device == b.device && a.inode == b.inode && a.bytes == b.bytes &&
         a.modified_ns == b.modified_ns && a.mode == b.mode;
}

std::optional<FileState> state_at(int folder, const std::string& name) {
  struct stat status{};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return FileState::of(status);
}

Result<Fd> Placement::folder_of(const std::string& path) const {
  Fd folder{open_beneath(root_, folder_path(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)};
  if (!folder) return disk_failure("open the folder of", path, errno);
  return folder;
}

Result<Fd> Placement::make_folder_of(const std::string& path) const {
  Fd folder{open_beneath(root_, ".", O_RDONLY | O_DIRECTORY)};
  if (!folder) return disk_failure("open", path, errno);
  std::size_t at = 0;
  for (std::size_t slash = path.find('/'); slash != std::string::npos;
       at = slash + 1, slash = path.find('/', at)) {
    const std::string name = path.substr(at, slash - at);
    const bool made = ::mkdirat(folder.get(), name.c_str(), 0755) == 0;
    if (!made && errno != EEXIST) return disk_failure("create the folder of", path, errno);
    Fd next{open_beneath(folder.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)};
    if (!next) return disk_failure("open the folder of", path, errno);
    if (made && owner_ && ::fchown(next.get(), owner_->first, owner_->second) != 0) {
      return disk_failure("give away the folder of", path, errno);
    }
    folder = std::move(next);
  }
  return folder;
}

Result<Placement::Outcome> Placement::place(const ApplyStep& step) const {
  return step.after ? put(step) : remove(step);
}

Result<Placement::Outcome> Placement::put(const ApplyStep& step) const {
  auto folder = make_folder_of(step.path);
  if (!folder) {
    // A file or a link stands where a folder must be.
    if (is_there_no_more(folder.error()) || folder.error().code == Errc::path_refused) {
      return Outcome::changed;
    }
    return std::unexpected(std::move(folder).error());
  }
  const std::string name = last_name(step.path);
  const auto now = state_at(folder->get(), name);
  const bool placed = now && now->device == step.after->device && now->inode == step.after->inode;
  if (!placed) {
    const unsigned how = step.before ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (::renameat2(draft_, step.slot.c_str(), folder->get(), name.c_str(), how) != 0) {
      if (errno == EEXIST || errno == ENOENT || errno == EISDIR || errno == ENOTDIR) {
        return Outcome::changed;
      }
      return disk_failure("replace", step.path, errno);
    }
  }
  if (!step.before) return Outcome::done;
  const auto old = state_at(draft_, step.slot);
  if (old && is_same_content(*old, *step.before)) return Outcome::done;
  if (!old) return Outcome::done;  // a process that was killed had already deleted it
  if (::renameat2(draft_, step.slot.c_str(), folder->get(), name.c_str(), RENAME_EXCHANGE) != 0) {
    return disk_failure("put back", step.path, errno);
  }
  return Outcome::changed;
}

Result<Placement::Outcome> Placement::remove(const ApplyStep& step) const {
  auto folder = folder_of(step.path);
  if (!folder) {
    if (is_there_no_more(folder.error())) return Outcome::done;
    if (folder.error().code == Errc::path_refused) return Outcome::changed;
    return std::unexpected(std::move(folder).error());
  }
  const std::string name = last_name(step.path);
  if (!state_at(draft_, step.slot)) {
    if (::renameat2(folder->get(), name.c_str(), draft_, step.slot.c_str(), RENAME_NOREPLACE) !=
        0) {
      if (errno == ENOENT) return Outcome::done;
      return disk_failure("remove", step.path, errno);
    }
  }
  const auto old = state_at(draft_, step.slot);
  if (!old || !step.before || is_same_content(*old, *step.before)) return Outcome::done;
  if (::renameat2(draft_, step.slot.c_str(), folder->get(), name.c_str(), RENAME_NOREPLACE) != 0) {
    return disk_failure("put back", step.path, errno);
  }
  return Outcome::changed;
}

Result<Placement::Outcome> Placement::undo(const ApplyStep& step) const {
  BERTH_TRY(const Fd folder, make_folder_of(step.path));
  const std::string name = last_name(step.path);
  int failed = 0;
  if (!step.after) {
    failed = ::renameat2(draft_, step.slot.c_str(), folder.get(), name.c_str(), RENAME_NOREPLACE);
    if (failed != 0 && errno == EEXIST) return Outcome::changed;
  } else if (step.before) {
    failed = ::renameat2(draft_, step.slot.c_str(), folder.get(), name.c_str(), RENAME_EXCHANGE);
  } else {
    failed = ::renameat2(folder.get(), name.c_str(), draft_, step.slot.c_str(), RENAME_NOREPLACE);
  }
  if (failed != 0) return disk_failure("put back", step.path, errno);
  if (!step.after) return Outcome::done;
  const auto ours = state_at(draft_, step.slot);
  return ours && is_same_content(*ours, *step.after) ? Outcome::done : Outcome::changed;
}

void Placement::remove_empty_folders(const std::string& path) const {
  for (std::string at = folder_path(path); at != "."; at = folder_path(at)) {
    const Fd above{open_beneath(root_, folder_path(at), O_RDONLY | O_DIRECTORY | O_NOFOLLOW)};
    if (!above || ::unlinkat(above.get(), last_name(at).c_str(), AT_REMOVEDIR) != 0) return;
  }
}

}  // namespace berth::snapshots
