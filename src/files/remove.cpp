#include "workspaces/removal.hpp"

#include "workspaces/path.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

namespace berth::workspaces {
namespace {

bool is_denied(int error_number) {
  return error_number == EACCES || error_number == EPERM;
}

// A folder that its owner closed is opened to the owner. It is held first, because a name could be
// a link to somewhere else by now.
Result<Fd> open_folder_to_empty(int parent, const std::string& name, std::string_view shown) {
  Fd folder{open_beneath(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, Mounts::refused)};
  if (folder || !is_denied(errno)) {
    if (!folder) return disk_failure("open", shown, errno);
    return folder;
  }
  const Fd held{open_beneath(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, Mounts::refused)};
  if (!held) return disk_failure("open", shown, errno);
  if (::chmod(path_of(held.get()).c_str(), 0700) != 0) return disk_failure("open", shown, errno);
  folder = Fd{::openat(held.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!folder) return disk_failure("open", shown, errno);
  return folder;
}

// Every folder below the top is moved up into the top before its content is processed.
class Removal {
 public:
  Removal(Fd top, std::string_view shown, const Limits& limits)
      : top_(std::move(top)), shown_(shown), left_(limits.removed_max), prefix_(draft_name()) {}

  Result<> run() {
    BERTH_DO(empty(top_.get()));
    while (!waiting_.empty()) {
      const std::string name = std::move(waiting_.back());
      waiting_.pop_back();
      BERTH_TRY(const Fd folder, open_folder_to_empty(top_.get(), name, shown_));
      BERTH_DO(empty(folder.get()));
      if (::unlinkat(top_.get(), name.c_str(), AT_REMOVEDIR) != 0) return failure(errno);
    }
    return {};
  }

 private:
  std::unexpected<Error> failure(int error_number) const {
    // Another process created something in the emptied folder.
    if (error_number == ENOTEMPTY || error_number == EEXIST) {
      return fail(Errc::conflict, "path '" + escaped(shown_) + "': changed while it was removed",
                  "stop what writes there and repeat");
    }
    return disk_failure("remove", shown_, error_number);
  }

  Result<> empty(int folder) {
    std::vector<std::string> names;
    BERTH_TRY(Names found, Names::of(folder, shown_));
    while (true) {
      BERTH_TRY(std::optional<std::string> name, found.next());
      if (!name) break;
      if (left_-- == 0) return refuse(shown_, "holds too much to be removed at once");
      names.push_back(*std::move(name));
    }
    for (const std::string& name : names) {
      int error_number = ::unlinkat(folder, name.c_str(), 0) == 0 ? 0 : errno;
      if (is_denied(error_number) && ::fchmod(folder, 0700) == 0) {
        error_number = ::unlinkat(folder, name.c_str(), 0) == 0 ? 0 : errno;
      }
      if (error_number == EISDIR) {
        BERTH_DO(move_up(folder, name));
      } else if (error_number != 0 && error_number != ENOENT) {
        return failure(error_number);
      }
    }
    return {};
  }

  // Moving a folder changes its "..", so it must be writable itself.
  Result<> move_up(int folder, const std::string& name) {
    std::string fresh = prefix_ + "-" + std::to_string(++last_);
    int error_number = rename(folder, name, fresh);
    if (is_denied(error_number)) {
      BERTH_TRY(const Fd inner, open_folder_to_empty(folder, name, shown_));
      if (::fchmod(inner.get(), 0700) == 0) error_number = rename(folder, name, fresh);
    }
    if (error_number == ENOENT) return {};
    if (error_number != 0) return failure(error_number);
    waiting_.push_back(std::move(fresh));
    return {};
  }

  int rename(int folder, const std::string& name, const std::string& fresh) const {
    return ::renameat(folder, name.c_str(), top_.get(), fresh.c_str()) == 0 ? 0 : errno;
  }

  Fd top_;
  std::string_view shown_;
  std::uint64_t left_;
  std::string prefix_;
  std::vector<std::string> waiting_;  // folders in the top that still have to be emptied
  std::uint64_t last_ = 0;
};

}  // namespace

Result<> remove_beneath(int folder, const std::string& name, std::string_view shown,
                        const Limits& limits) {
  const int error_number = ::unlinkat(folder, name.c_str(), 0) == 0 ? 0 : errno;
  if (error_number == 0) return {};
  if (error_number != EISDIR) return disk_failure("remove", shown, error_number);
  BERTH_TRY(Fd top, open_folder_to_empty(folder, name, shown));
  BERTH_DO(Removal{std::move(top), shown, limits}.run());
  if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) != 0) {
    return disk_failure("remove", shown, errno);
  }
  return {};
}

}  // namespace berth::workspaces
