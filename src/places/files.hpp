#pragma once

#include "base/async/task.hpp"
#include "base/owned.hpp"
#include "places/place_ref.hpp"

#include <sys/types.h>

#include <optional>
#include <string>

namespace berth::places {

// A place's files, for moving files in or out: a folder whose tree its commands may change at any
// time.
struct FileRoot {
  struct User {
    uid_t uid = 0;
    gid_t gid = 0;
  };
  // refused: the tree is one folder of one file system. entered: it consists of several mounts,
  // which all belong to the place.
  enum class Mounts { refused, entered };

  Fd folder;                      // O_PATH is enough
  std::optional<User> user = {};  // their owner; absent: the server's own user
  Mounts mounts = Mounts::refused;
  // The working directory, if the folder is the commands' "/"; absent: the folder is the working
  // directory.
  std::optional<std::string> workdir = {};
};

// Files of a place that is a folder of this machine. remote_files.hpp has the alternative.
class Files {
 public:
  virtual ~Files() = default;
  virtual Task<FileRoot> files(const PlaceRef& lease) = 0;
};

}  // namespace berth::places
