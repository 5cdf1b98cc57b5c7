#include "snapshots/checkout.hpp"

#include "base/files.hpp"
#include "base/random.hpp"
#include "base/remove_tree.hpp"
#include "snapshots/beneath.hpp"
#include "snapshots/folder/tree_name.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <unordered_set>

namespace berth::snapshots {
namespace {

// Writes blobs as the files and links of a new folder that nobody else knows yet.
class TreeSink : public BlobSink {
 public:
  TreeSink(int root, const std::vector<const TreeEntry*>& entries, const CheckoutLimits& limits)
      : root_(root), entries_(entries), limits_(limits) {}

  Result<> begin(std::size_t index, std::uint64_t bytes) override {
    entry_ = entries_[index];
    done.bytes += bytes;
    if (done.bytes > limits_.bytes_max) {
      return fail(Errc::workspace_too_large,
                  "the snapshot has more than " + std::to_string(limits_.bytes_max) + " bytes");
    }
    BERTH_DO(enter_folder_of(entry_->path));
    text_.clear();
    if (entry_->mode == GitMode::link) {
      if (bytes == 0 || bytes >= PATH_MAX) return refuse(entry_->path, "is a link to nowhere");
      return {};
    }
    const mode_t mode = entry_->mode == GitMode::program ? 0755 : 0644;
    file_ = Fd{::openat(folder(), name().c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)};
    // The file must have this mode whatever the umask is.
    if (!file_ || ::fchmod(file_.get(), mode) != 0)
      return io_failure("create", entry_->path, errno);
    return {};
  }

  Result<> write(std::string_view piece) override {
    if (entry_->mode == GitMode::link) {
      text_ += piece;
      return {};
    }
    while (!piece.empty()) {
      const ssize_t wrote = ::write(file_.get(), piece.data(), piece.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return io_failure("write", entry_->path, errno);
      piece.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return {};
  }

  Result<> end() override {
    ++done.files;
    if (entry_->mode != GitMode::link) {
      file_ = {};
      return {};
    }
    if (text_.contains('\0')) return refuse(entry_->path, "is a link with a NUL in its target");
    if (::symlinkat(text_.c_str(), folder(), name().c_str()) != 0) {
      return io_failure("link", entry_->path, errno);
    }
    return {};
  }

  Result<> make_nested(const std::string& path) {
    BERTH_DO(enter_folder_of(path));
    const std::string last = path.substr(path.rfind('/') + 1);
    if (::mkdirat(folder(), last.c_str(), 0755) != 0) return io_failure("create", path, errno);
    ++done.nested;
    return {};
  }

  Checkout done;

 private:
  struct Open {
    std::string name;
    Fd folder;
  };

  int folder() const { return open_.empty() ? root_ : open_.back().folder.get(); }
  std::string name() const { return entry_->path.substr(entry_->path.rfind('/') + 1); }

  // Paths come in order, so a folder is entered once.
  Result<> enter_folder_of(const std::string& path) {
    std::size_t depth = 0;
    std::size_t at = 0;
    for (std::size_t slash = path.find('/'); slash != std::string::npos;
         at = slash + 1, slash = path.find('/', at), ++depth) {
      const std::string part = path.substr(at, slash - at);
      if (depth < open_.size() && open_[depth].name == part) continue;
      while (open_.size() > depth) open_.pop_back();
      if (::mkdirat(folder(), part.c_str(), 0755) != 0 && errno != EEXIST) {
        return io_failure("create", path.substr(0, slash), errno);
      }
      Fd made{::openat(folder(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
      if (!made || ::fchmod(made.get(), 0755) != 0) {
        return io_failure("open", path.substr(0, slash), errno);
      }
      open_.push_back({part, std::move(made)});
    }
    while (open_.size() > depth) open_.pop_back();
    return {};
  }

  int root_;
  const std::vector<const TreeEntry*>& entries_;
  const CheckoutLimits& limits_;
  const TreeEntry* entry_ = nullptr;
  Fd file_;
  std::string text_;
  std::vector<Open> open_;
};

Result<Checkout> write_tree(const Repository& repository, const std::vector<TreeEntry>& entries,
                            const std::string& folder, const CheckoutLimits& limits) {
  const Fd root{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!root || ::fchmod(root.get(), 0755) != 0) return io_failure("open", folder, errno);
  std::vector<const TreeEntry*> written;
  std::vector<ObjectId> blobs;
  for (const TreeEntry& entry : entries) {
    if (entry.mode == GitMode::commit) continue;
    written.push_back(&entry);
    blobs.push_back(entry.id);
  }
  TreeSink sink{root.get(), written, limits};
  BERTH_DO(read_blobs(repository, blobs, sink));
  for (const TreeEntry& entry : entries) {
    if (entry.mode == GitMode::commit) BERTH_DO(sink.make_nested(entry.path));
  }
  // One call for the whole file system costs less than one for each of many files.
  if (::syncfs(root.get()) != 0) return io_failure("sync", folder, errno);
  return sink.done;
}

}  // namespace

Result<> check_tree(const std::vector<TreeEntry>& entries, const CheckoutLimits& limits) {
  std::unordered_set<std::string_view> files;
  std::unordered_set<std::string_view> folders;
  for (const TreeEntry& entry : entries) {
    BERTH_DO(check_tree_path(entry.path, limits.depth_max));
    const std::string_view path = entry.path;
    if (!files.insert(path).second || folders.contains(path)) {
      return refuse(path, "is there twice");
    }
    for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos && slash != 0;
         slash = path.rfind('/', slash - 1)) {
      if (files.contains(path.substr(0, slash))) return refuse(path, "leads through a file");
      if (!folders.insert(path.substr(0, slash)).second) break;
    }
  }
  return {};
}

Result<Checkout> check_out(const Repository& repository, const ObjectId& snapshot,
                           const std::string& folder, const CheckoutLimits& limits) {
  BERTH_TRY(const auto entries, list_tree(repository, snapshot, limits.files_max));
  BERTH_DO(check_tree(entries, limits));
  SystemRandom random;
  const std::string draft = folder + ".new." + random_base64url(random, 9);
  if (::mkdir(draft.c_str(), 0700) != 0) return io_failure("create", draft, errno);
  Result<Checkout> written = write_tree(repository, entries, draft, limits);
  if (written &&
      ::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, folder.c_str(), RENAME_NOREPLACE) != 0) {
    written = errno == EEXIST
                  ? Result<Checkout>{fail(Errc::conflict, folder + ": is there already")}
                  : Result<Checkout>{io_failure("rename", draft, errno)};
  }
  if (!written) static_cast<void>(remove_tree(draft));
  return written;
}

}  // namespace berth::snapshots
