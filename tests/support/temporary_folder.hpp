#pragma once

#include "base/assert.hpp"

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace berth::tests {

// A folder for one test, removed with it.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_((std::filesystem::temp_directory_path() / "berth-test-XXXXXX").string()) {
    BERTH_ASSERT(::mkdtemp(path_.data()) != nullptr);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace berth::tests
