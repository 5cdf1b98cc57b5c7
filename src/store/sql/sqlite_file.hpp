#pragma once

#include "base/files.hpp"

#include <string>

namespace berth::store {

// The file of a SQLite database while this process uses it: created with mode 0600 if missing, and
// locked against a second server through `<path>.lock`. The lock file is never removed, because two
// servers could then hold locks on two files of that name.
class SqliteFile {
 public:
  // store_unreachable for a missing folder, store_locked (with the other's pid), store_read_only,
  // store_full, store_corrupt for a path that is not a file.
  static Result<SqliteFile> take(const std::string& path);

  const std::string& path() const { return path_; }

 private:
  SqliteFile(Fd lock, std::string path) : lock_(std::move(lock)), path_(std::move(path)) {}

  Fd lock_;
  std::string path_;
};

}  // namespace berth::store
