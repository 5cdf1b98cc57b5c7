#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <string>

namespace berth::snapshots {

// A lock between processes, which ends with its holder even if that is killed.
class FileLock {
 public:
  enum class Kind { shared, exclusive };
  // workspace_busy if another holder is in the way: it does not wait.
  static Result<FileLock> take(const std::string& path, Kind kind);

 private:
  explicit FileLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace berth::snapshots
