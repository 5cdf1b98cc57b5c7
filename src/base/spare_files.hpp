#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace berth {

// New files of one folder, made before they are asked for and named when they are. ext4 takes a
// third of a millisecond for a new file where many were deleted lately. Until they have a name the
// file system knows that they are nobody's: they are gone with the process. May be used by several
// threads.
class SpareFiles {
 public:
  explicit SpareFiles(std::string folder) : folder_(std::move(folder)) {}

  // Opens the file for reading and writing; makes it, with mode 0600, unless it is there.
  Result<Fd> open(const std::string& path);
  // Makes as many as are missing. For a thread that may wait for the disk.
  void restock();

 private:
  Fd take();

  std::string folder_;
  std::mutex mutex_;
  std::vector<Fd> spare_;
};

}  // namespace berth
