#pragma once

#include "files/beneath.hpp"
#include "files/draft.hpp"
#include "files/path.hpp"
#include "files/progress.hpp"
#include "files/readable_file.hpp"
#include "files/stream.hpp"

#include <boost/describe/enum.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace berth::workspaces {

// What the callers of this folder need of the library below it.
using files::ByteSink;
using files::ByteSource;
using files::disk_failure;
using files::draft_name;
using files::escaped;
using files::Found;
using files::HardLinks;
using files::Limits;
using files::may_leave;
using files::Mounts;
using files::open_beneath;
using files::Owner;
using files::Path;
using files::Progress;
using files::ProgressSink;
using files::ReadableFile;
using files::refuse;
using files::set_look;
using files::source_of;
using files::time_of;
using files::timespec_of;
using files::unescaped;

BOOST_DEFINE_ENUM_CLASS(FileType, file, directory, symbolic_link, pipe, socket, device)

// One entry of a tree, described without being opened.
struct FileView {
  std::string name;  // exact bytes; use `escaped` before showing it
  FileType type = FileType::file;
  mode_t mode = 0;  // permission bits
  std::uint64_t bytes = 0;
  timespec modified = {};
  std::string target = {};  // of a symbolic link, unresolved
};

struct FolderView {
  enum class Extent { whole, cut };
  std::vector<FileView> entries;  // in byte order
  Extent extent = Extent::whole;  // cut: there are more than a listing may have
};

// Mode, owner and time of a new entry. Without an owner it belongs to this process.
struct Look {
  mode_t mode = 0644;
  std::optional<Owner> owner = {};
  std::optional<timespec> modified = {};  // of a file; absent: now
};

// Files below one folder that other processes may change at any time, by untrusted paths. Every
// call starts at the folder's descriptor and follows no symbolic link, so nothing outside is ever
// read or written, whatever the tree turns into meanwhile. All calls block: make them on the pool.
// Several threads may call it at a time.
//
// Fails with path_refused (which rule, which path), file_not_found, store_full or io_failed.
class Confined {
 public:
  // The root's descriptor may be O_PATH. If `user` is given, everything is done as that user. That
  // includes sinks and sources, so they must not open files of their own.
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

  // For callers that need the size before the first byte.
  Result<ReadableFile> open_file(std::string_view path) const;
  Result<FileView> read_file(std::string_view path, const ByteSink& sink) const;

  // The path has the old content or the complete new one, never a part. Parent folders are created
  // as needed, with the same owner. Only a regular file is replaced. Not synced: a power cut may
  // lose it. Returns the bytes written.
  Result<std::uint64_t> write_file(std::string_view path, const ByteSource& source,
                                   const Look& look) const;
  // With all parent folders; an existing one is not changed.
  Result<> make_directory(std::string_view path, const Look& look) const;
  // A file, a link, or a folder with all its content; not the root.
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

// The folder at the first `count` names of the path; created if it is missing.
Result<Fd> make_folder(const Confined& root, const Path& path, std::size_t count, const Look& look);
FileView view_of(std::string name, const struct stat& status);

}  // namespace berth::workspaces
