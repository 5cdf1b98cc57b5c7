#include "files/draft.hpp"

#include "base/random.hpp"
#include "files/path.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

namespace berth::files {
namespace {

constexpr std::string_view draft_prefix = ".berth-draft-";

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
class Merging {
 public:
  Merging(Mounts mounts, Pass pass) : mounts_(mounts), pass_(pass) {}

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
    Result<Found> theirs = find(pair.target.get(), name, mounts_, shown);
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
      return refuse(
          shown, mine.is_directory() ? "is there and not a directory" : "is there as a directory",
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

  Mounts mounts_;
  Pass pass_;
  dev_t device_ = 0;
  std::vector<Pair> pairs_;
};

}  // namespace

std::string draft_name() {
  SystemRandom random;
  return std::string{draft_prefix} + random_base64url(random, 12);
}

bool is_draft_name(std::string_view name) {
  return name.starts_with(draft_prefix);
}

Result<DraftFile> DraftFile::in(int folder, Mounts mounts, std::string_view shown) {
  std::string name = draft_name();
  Fd file{open_beneath(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mounts, 0600)};
  if (!file) return disk_failure("create", shown, errno);
  return DraftFile{folder, std::move(name), std::move(file)};
}

DraftFile::DraftFile(DraftFile&& other) noexcept
    : folder_(other.folder_),
      name_(std::exchange(other.name_, {})),
      file_(std::move(other.file_)) {}

DraftFile::~DraftFile() {
  if (!name_.empty()) ::unlinkat(folder_, name_.c_str(), 0);
}

Result<> DraftFile::put(const std::string& name, std::string_view shown) {
  if (::renameat(folder_, name_.c_str(), folder_, name.c_str()) != 0) {
    if (errno == EISDIR) return refuse(shown, "is a directory, not a regular file");
    return disk_failure("replace", shown, errno);
  }
  name_.clear();
  return {};
}

Result<DraftFolder> DraftFolder::in(int folder, std::string shown, std::uint64_t entries_max) {
  std::string name = draft_name();
  if (::mkdirat(folder, name.c_str(), 0700) != 0) return disk_failure("make", shown, errno);
  return DraftFolder{folder, std::move(name), std::move(shown), entries_max};
}

DraftFolder::DraftFolder(DraftFolder&& other) noexcept
    : folder_(other.folder_),
      name_(std::exchange(other.name_, {})),
      shown_(std::move(other.shown_)),
      entries_max_(other.entries_max_) {}

DraftFolder::~DraftFolder() {
  if (!name_.empty()) static_cast<void>(remove());
}

Result<Fd> DraftFolder::open() const {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  Fd opened{open_beneath(folder_, name_, flags, Mounts::refused)};
  if (!opened) return disk_failure("open", shown_, errno);
  return opened;
}

Result<> DraftFolder::put(const std::string& name) {
  const auto rename = [&](unsigned flags) {
    return ::renameat2(folder_, name_.c_str(), folder_, name.c_str(), flags) == 0 ? 0 : errno;
  };
  int error = rename(RENAME_NOREPLACE);
  if (error == 0) {
    name_.clear();
    return {};
  }
  if (error == EEXIST) error = rename(RENAME_EXCHANGE);
  if (error != 0) return disk_failure("replace", shown_, error);
  return remove();
}

Result<> DraftFolder::merge_into(int target, Mounts mounts) const {
  BERTH_TRY(const Fd draft, open());
  BERTH_DO(Merging(mounts, Pass::look).run(draft.get(), target, shown_));
  return Merging{mounts, Pass::move}.run(draft.get(), target, shown_);
}

Result<> DraftFolder::remove() {
  return remove_beneath(folder_, std::exchange(name_, {}), shown_, entries_max_);
}

}  // namespace berth::files
