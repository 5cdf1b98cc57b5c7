#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace berth {

// New files in one folder, created in advance and named when requested. ext4 takes a third of a
// millisecond for a new file if many were deleted recently. Until they have a name, the file system
// removes them with the process. Thread-safe.
class SpareFiles {
 public:
  explicit SpareFiles(std::string folder) : folder_(std::move(folder)) {}

  // Opens the file for reading and writing; creates it, with mode 0600, if it does not exist.
  Result<Fd> open(const std::string& path);
  // Creates as many as are missing. For a thread that may wait for the disk.
  void restock();

 private:
  Fd take();

  std::string folder_;
  std::mutex mutex_;
  std::vector<Fd> spare_;
};

}  // namespace berth
