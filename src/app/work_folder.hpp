#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "cli/print/console.hpp"

#include <string>
#include <utility>

namespace berth::app {

// A folder for this process only, removed with its contents. The lock on the folder shows that the
// process lives; the next process removes what a killed one has left.
class WorkFolder {
 public:
  // In the user's runtime folder, or in /tmp.
  static Result<WorkFolder> make(const cli::Console& console);
  WorkFolder(WorkFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();

  const std::string& path() const { return path_; }

 private:
  WorkFolder(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;
};

}  // namespace berth::app
