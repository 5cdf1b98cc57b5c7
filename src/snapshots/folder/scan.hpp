#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "snapshots/git/object_id.hpp"
#include "snapshots/git/repository.hpp"

#include <sys/stat.h>

#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::snapshots {

struct SnapshotLimits {
  std::uint64_t files_max = 500'000;
  std::uint64_t bytes_max = 64ULL << 30;
  std::uint64_t file_bytes_max = 16ULL << 30;
  std::uint64_t entries_max = 4'000'000;  // looked at, with those that are left out
  std::size_t depth_max = 128;            // each folder on the way down is a descriptor
  std::size_t notices_max = 1000;
};

// Where the bytes of an entry are, and when they changed: what stays equal while nobody writes.
struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  std::uint32_t mode = 0;  // of stat: type and permissions

  static FileState of(const struct stat& status);
  friend bool operator==(const FileState&, const FileState&) = default;
};

struct ScannedEntry {
  std::string path;  // exact bytes, from the root
  GitMode mode = GitMode::file;
  FileState state = {};
  ObjectId id = {};  // of a nested repository from the start, of others when they were read
};

enum class Reason {
  ignored,            // by .gitignore
  excluded,           // by .berthignore, an option, or because it holds a secret
  heavy,              // a name such as node_modules, in a folder that is not a git repository
  special_file,       // a device, socket or pipe
  name,               // a name that could mean .git elsewhere, or has control characters
  other_file_system,  // a mount point below the folder
  hard_link,          // it has more names, perhaps outside
  unreadable,         // no permission
  nested_repository,  // kept as the id of its commit, without its files
  nested_without_commit,
  set_id_bit,   // taken without its set-user-id or set-group-id bit
  lfs_pointer,  // the pointer is taken; its content is elsewhere
};
std::string_view name_of(Reason reason);
// Whether the entry with this reason is not in the snapshot.
bool leaves_out(Reason reason);

struct Notice {
  std::string path;
  Reason reason = Reason::ignored;

  friend auto operator<=>(const Notice&, const Notice&) = default;
};

struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};

struct ScanOptions {
  enum class HardLinks { taken, left_out };

  SnapshotLimits limits = {};
  std::vector<std::string> include = {};  // paths that are taken whatever rule is against them
  std::vector<std::string> exclude = {};  // patterns as in .gitignore
  std::set<FileIdentity> hidden = {};     // files that hold secrets, under whatever name
  HardLinks hard_links = HardLinks::taken;
};

struct Scan {
  std::vector<ScannedEntry> entries;  // in the order of their paths, folders as "name/"
  std::vector<Notice> notices;
  std::uint64_t left_out = 0;
  std::uint64_t bytes = 0;
};

// Lists what of a folder belongs into a snapshot: files, links and nested repositories that no rule
// leaves out. Reads no file but ignore files and what says which files git tracks. Every step
// starts at an open folder and follows no link.
Result<Scan> scan_folder(const Repository& repository, int root, const std::string& shown,
                         const ScanOptions& options);

}  // namespace berth::snapshots
