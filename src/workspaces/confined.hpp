#pragma once

#include "workspaces/disk.hpp"
#include "workspaces/path.hpp"
#include "workspaces/readable_file.hpp"
#include "workspaces/stream.hpp"

#include <boost/describe/enum.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace berth::workspaces {

BOOST_DEFINE_ENUM_CLASS(FileType, file, directory, symbolic_link, pipe, socket, device)

// One thing in a tree, described without being opened.
struct FileView {
  std::string name;  // exact bytes; `escaped` before anybody reads it
  FileType type = FileType::file;
  mode_t mode = 0;  // permission bits
  std::uint64_t bytes = 0;
  timespec modified = {};
  std::string target = {};  // of a symbolic link, as it is written
};

struct FolderView {
  enum class Extent { whole, cut };
  std::vector<FileView> entries;  // in order of their bytes
  Extent extent = Extent::whole;  // cut: there is more than a listing holds
};

// How a new thing looks. Without an owner it belongs to this process.
struct Look {
  mode_t mode = 0644;
  std::optional<Owner> owner = {};
  std::optional<timespec> modified = {};  // of a file; absent: now
};

// Files below one folder that somebody else may change at any moment, by paths that nobody vouches
// for. Every call starts at the folder's descriptor and follows no symbolic link, so nothing
// outside is ever read or written, whatever the tree turns into meanwhile. All calls block: they
// belong on the pool. Calls from several threads at a time are fine.
//
// Fails with path_refused (which rule, which path), file_not_found, store_full or io_failed.
class Confined {
 public:
  // The descriptor of the root may be an O_PATH one. All is done as `user` where one is given, and
  // so is what sinks and sources do meanwhile: they open no files of their own.
  explicit Confined(Fd root, Mounts mounts = Mounts::refused, Limits limits = {},
                    std::optional<Owner> user = {}, HardLinks hard_links = HardLinks::refused)
      : root_(std::move(root)),
        mounts_(mounts),
        limits_(limits),
        user_(user),
        hard_links_(hard_links) {}

  // A link at the end is described itself.
  Result<FileView> stat(std::string_view path) const;
  Result<FolderView> list(std::string_view path) const;

  // For those who must know the size before the first byte.
  Result<ReadableFile> open_file(std::string_view path) const;
  Result<FileView> read_file(std::string_view path, const ByteSink& sink) const;

  // The path holds the old content or the whole new one, never a part; folders above it are made
  // as needed, with the same owner. Only a regular file is replaced. Not synced: a power cut may
  // take it. Returns the bytes written.
  Result<std::uint64_t> write_file(std::string_view path, const ByteSource& source,
                                   const Look& look) const;
  // With all folders above it; one that is there stays as it is.
  Result<> make_directory(std::string_view path, const Look& look) const;
  // A file, a link, or a folder with all that is in it; not the root.
  Result<> remove(std::string_view path) const;

  int root() const { return root_.get(); }
  Mounts mounts() const { return mounts_; }
  const Limits& limits() const { return limits_; }
  const std::optional<Owner>& user() const { return user_; }
  HardLinks hard_links() const { return hard_links_; }

 private:
  Fd root_;
  Mounts mounts_;
  Limits limits_;
  std::optional<Owner> user_;
  HardLinks hard_links_;
};

// The folder that the first `count` names of the path lead to, made where it is missing.
Result<Fd> make_folder(const Confined& root, const Path& path, std::size_t count, const Look& look);
FileView view_of(std::string name, const struct stat& status);

}  // namespace berth::workspaces
