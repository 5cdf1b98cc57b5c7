#include "snapshots/folder/tracked.hpp"

#include "base/files.hpp"
#include "base/random.hpp"
#include "base/strings.hpp"
#include "snapshots/beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace berth::snapshots {
namespace {

constexpr std::size_t index_bytes_max = 512 << 20;
constexpr std::size_t exclude_bytes_max = 1 << 20;
constexpr std::size_t ref_bytes_max = 4096;
constexpr std::size_t packed_refs_bytes_max = 16 << 20;

std::optional<std::string> read_regular(int fd, std::size_t bytes_max) {
  struct stat status{};
  if (fd < 0 || ::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  auto text = read_fd(fd, bytes_max, "a file");
  if (!text) return std::nullopt;
  return *std::move(text);
}

// In a worktree, .git is a file that names the folder with its index.
Result<Fd> open_git_folder(int root, const std::string& shown) {
  Fd folder{open_beneath(root, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW)};
  if (folder) return folder;
  const auto pointer = read_small(root, ".git", ref_bytes_max);
  constexpr std::string_view prefix = "gitdir: ";
  if (!pointer || !pointer->starts_with(prefix)) return Fd{};
  const std::string target{trimmed(std::string_view{*pointer}.substr(prefix.size()), "\r\n")};
  Fd elsewhere{::openat(root, target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!elsewhere) {
    return fail(Errc::workspace_invalid,
                shown + ": its .git file names the folder '" + escaped(target) +
                    "', which cannot be opened",
                "repair the worktree with git worktree repair");
  }
  return elsewhere;
}

// A copy under a name of our own, which is deleted at the end.
class IndexCopy {
 public:
  explicit IndexCopy(std::string path) : path_(std::move(path)) {}
  IndexCopy(const IndexCopy&) = delete;
  IndexCopy& operator=(const IndexCopy&) = delete;
  ~IndexCopy() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string fresh_index_path(const Repository& ours) {
  SystemRandom random;
  return ours.folder() + "/berth/index." + random_base64url(random, 9);
}

}  // namespace

std::optional<std::string> read_small(int folder, const std::string& path, std::size_t bytes_max) {
  const Fd file{open_beneath(folder, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)};
  return read_regular(file.get(), bytes_max);
}

Result<std::optional<Tracked>> Tracked::of(const Repository& ours, int root,
                                           const std::string& shown) {
  BERTH_TRY(const Fd git_folder, open_git_folder(root, shown));
  if (!git_folder) return std::nullopt;
  Tracked tracked;
  tracked.excludes_ = read_small(git_folder.get(), "info/exclude", exclude_bytes_max).value_or("");
  struct stat status{};
  if (::fstatat(git_folder.get(), "index", &status, AT_SYMLINK_NOFOLLOW) != 0) return tracked;
  const auto index = read_small(git_folder.get(), "index", index_bytes_max);
  const auto broken = [&](const std::string& why) {
    return fail(Errc::workspace_invalid,
                shown + ": the index of its git repository cannot be read" + why,
                "repair it with git reset, or exclude .git by copying the folder");
  };
  if (!index) return broken("");
  const IndexCopy copy{fresh_index_path(ours)};
  BERTH_DO(create_file(copy.path(), *index, 0600));
  auto listed = ours.output({.arguments = {"ls-files", "--cached", "--stage", "--sparse", "-z"},
                             .variables = {{"GIT_INDEX_FILE", copy.path()}}},
                            index_bytes_max);
  if (!listed && listed.error().code == Errc::git_failed)
    return broken(": " + listed.error().message);
  if (!listed) return std::unexpected(std::move(listed).error());
  // "100644 <id> <stage>\t<path>\0"
  for (std::string_view rest = *listed; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos || line.size() < 48) continue;
    std::string path{line.substr(tab + 1)};
    if (line.starts_with("160000 ")) {
      if (const auto id = ObjectId::from_hex(line.substr(7, 40))) tracked.commits_[path] = *id;
    }
    tracked.paths_.push_back(std::move(path));
  }
  std::ranges::sort(tracked.paths_);
  return tracked;
}

bool Tracked::has(std::string_view path) const {
  return std::ranges::binary_search(paths_, path);
}

bool Tracked::has_below(std::string_view folder) const {
  const std::string prefix = std::string{folder} + "/";
  const auto at = std::ranges::lower_bound(paths_, prefix);
  return at != paths_.end() && at->starts_with(prefix);
}

std::optional<ObjectId> Tracked::commit_of(std::string_view path) const {
  const auto at = commits_.find(path);
  if (at == commits_.end()) return std::nullopt;
  return at->second;
}

std::optional<ObjectId> head_of(int git_folder) {
  const auto head = read_small(git_folder, "HEAD", ref_bytes_max);
  if (!head) return std::nullopt;
  const std::string_view text = trimmed(*head, "\r\n ");
  if (const auto id = ObjectId::from_hex(text)) return id;
  constexpr std::string_view prefix = "ref: ";
  if (!text.starts_with(prefix)) return std::nullopt;
  const std::string name{text.substr(prefix.size())};
  if (const auto loose = read_small(git_folder, name, ref_bytes_max)) {
    return ObjectId::from_hex(trimmed(*loose, "\r\n "));
  }
  const auto packed = read_small(git_folder, "packed-refs", packed_refs_bytes_max);
  if (!packed) return std::nullopt;
  const std::size_t at = packed->find(" " + name + "\n");
  if (at == std::string::npos || at < 40) return std::nullopt;
  return ObjectId::from_hex(std::string_view{*packed}.substr(at - 40, 40));
}

}  // namespace berth::snapshots
