#pragma once

#include "base/result.hpp"

#include <string>

namespace berth::fake {

// The folder of a sandbox. Its name is derived from the lease id.
class SandboxFolder {
 public:
  enum class Made { now, was_there };

  static Result<SandboxFolder> of_lease(const std::string& lease_id);

  const std::string& path() const { return path_; }
  // Created by the first caller that needs it.
  std::string workspace() const { return path_ + "/workspace"; }
  // Where commands' keepers have their state, each in its own folder.
  std::string keepers() const { return path_ + "/keepers"; }

  bool is_there() const;
  // Fails if another user has created a file with that name.
  Result<Made> make() const;
  // Ends everything that runs in it, then removes it. Succeeds if it does not exist.
  Result<> remove() const;

 private:
  explicit SandboxFolder(std::string path) : path_(std::move(path)) {}
  bool is_ours() const;

  std::string path_;
};

}  // namespace berth::fake
