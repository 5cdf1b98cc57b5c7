#pragma once

#include "base/result.hpp"

#include <string>

namespace berth::fake {

// The folder that is a sandbox. Its name is a function of the lease's id.
class SandboxFolder {
 public:
  enum class Made { now, was_there };

  static Result<SandboxFolder> of_lease(const std::string& lease_id);

  const std::string& path() const { return path_; }
  // Made by whoever is the first to need it.
  std::string workspace() const { return path_ + "/workspace"; }
  // Where keepers of commands have their state, each in a folder of its own.
  std::string keepers() const { return path_ + "/keepers"; }

  bool is_there() const;
  // Refused when somebody else has made a file of that name.
  Result<Made> make() const;
  // Ends all that runs in it, then removes it. Nothing there is fine.
  Result<> remove() const;

 private:
  explicit SandboxFolder(std::string path) : path_(std::move(path)) {}
  bool is_ours() const;

  std::string path_;
};

}  // namespace berth::fake
