#pragma once

#include "base/files.hpp"

#include <string>

namespace berth::store {

// The file of a SQLite database as long as this process uses it: made with mode 0600 when it is
// missing, and locked against a second server (through `<path>.lock`, which stays behind: to remove
// it would let two servers hold locks on two files of that name).
class SqliteFile {
 public:
  // store_unreachable for a missing folder, store_locked (with the other's pid), store_read_only,
  // store_full, store_corrupt for what is no file.
  static Result<SqliteFile> take(const std::string& path);

  const std::string& path() const { return path_; }

 private:
  SqliteFile(Fd lock, std::string path) : lock_(std::move(lock)), path_(std::move(path)) {}

  Fd lock_;
  std::string path_;
};

}  // namespace berth::store
