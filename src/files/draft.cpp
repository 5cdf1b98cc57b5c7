#include "workspaces/placing.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace berth::workspaces {
namespace {

enum class Pass { look, move };

// A folder that exists in both trees.
struct Pair {
  Names draft;
  Fd target;
  std::string shown;
};

Result<Pair> open_pair(int draft, int target, std::string shown) {
  BERTH_TRY(Names names, Names::of(draft, shown));
  Fd own{::fcntl(target, F_DUPFD_CLOEXEC, 0)};
  if (!own) return disk_failure("open", shown, errno);
  return Pair{std::move(names), std::move(own), std::move(shown)};
}

Result<> move(int from, const std::string& name, int to, mode_t mode, const std::string& shown) {
  const auto rename = [&](unsigned flags) {
    return ::renameat2(from, name.c_str(), to, name.c_str(), flags) == 0 ? 0 : errno;
  };
  if (!S_ISDIR(mode)) {
    if (const int error = rename(0); error != 0) return disk_failure("replace", shown, error);
    return {};
  }
  int error = rename(RENAME_NOREPLACE);
  if (error == EACCES) {
    // A folder must be writable itself to be moved, because its ".." changes.
    const Fd held{open_beneath(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, Mounts::refused)};
    if (!held) return disk_failure("open", shown, errno);
    ::fchmod(held.get(), (mode & 0777) | S_IWUSR);
    error = rename(RENAME_NOREPLACE);
    ::fchmod(held.get(), mode & 0777);
  }
  if (error != 0) return disk_failure("replace", shown, error);
  return {};
}

// One walk over the folders that both trees have; a folder that only the draft has is one step.
class Placing {
 public:
  Placing(const Confined& root, Pass pass) : root_(root), pass_(pass) {}

  Result<> run(int draft, int target, std::string_view shown) {
    struct stat status{};
    if (::fstat(draft, &status) != 0) return disk_failure("look at", shown, errno);
    device_ = status.st_dev;
    BERTH_TRY(Pair top, open_pair(draft, target, std::string{shown}));
    pairs_.push_back(std::move(top));
    while (!pairs_.empty()) {
      Pair& pair = pairs_.back();
      BERTH_TRY(std::optional<std::string> name, pair.draft.next());
      if (!name) {
        pairs_.pop_back();
      } else {
        BERTH_DO(step(pair, *name));
      }
    }
    return {};
  }

 private:
  Result<> step(const Pair& pair, const std::string& name) {
    const std::string shown = pair.shown == "." ? name : pair.shown + "/" + name;
    const int draft = pair.draft.folder();
    BERTH_TRY(const Found mine, find(draft, name, Mounts::refused, shown));
    Result<Found> theirs = find(pair.target.get(), name, root_.mounts(), shown);
    if (!theirs && theirs.error().code != Errc::file_not_found) {
      return std::unexpected(std::move(theirs).error());
    }
    if (theirs) {
      BERTH_DO(check_fits(mine, *theirs, shown));
      if (mine.is_directory()) {
        // Its mode is not needed, but its entries must be moved: it may be closed even to its
        // owner.
        ::chmod(path_of(mine.at.get()).c_str(), 0700);
        BERTH_TRY(Pair both, open_pair(mine.at.get(), theirs->at.get(), shown));
        pairs_.push_back(std::move(both));
        return {};
      }
    }
    if (pass_ == Pass::look) return {};
    return move(draft, name, pair.target.get(), mine.status.st_mode, shown);
  }

  Result<> check_fits(const Found& mine, const Found& theirs, const std::string& shown) const {
    const mode_t there = theirs.status.st_mode;
    if (mine.is_directory() != S_ISDIR(there)) {
      return refuse(shown,
                    mine.is_directory() ? "is there and no directory" : "is there as a directory",
                    "remove it first");
    }
    if (!S_ISDIR(there) && !S_ISREG(there) && !S_ISLNK(there)) {
      return refuse(shown, "is there and neither file nor link", "remove it first");
    }
    // An overlay reports a single device for folders only.
    if (S_ISDIR(there) && theirs.status.st_dev != device_) {
      return refuse(shown, "lies on another file system");
    }
    return {};
  }

  const Confined& root_;
  Pass pass_;
  dev_t device_ = 0;
  std::vector<Pair> pairs_;
};

}  // namespace

Result<> place(int draft, int target, std::string_view shown, const Confined& root) {
  BERTH_DO(Placing{root, Pass::look}.run(draft, target, shown));
  return Placing{root, Pass::move}.run(draft, target, shown);
}

}  // namespace berth::workspaces
