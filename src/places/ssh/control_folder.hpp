#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"

#include <cstddef>
#include <string>

namespace berth::places::ssh {

// A file with mode 0600 that is removed with this object.
struct FileKind {
  using Raw = std::string;
  static Raw none() { return {}; }
  static void dispose(const Raw& path) noexcept;
};
using ShortLivedFile = Owned<FileKind>;

// Where a running server keeps the sockets of its connections, and keys while ssh reads them. Mode
// 0700; a lock in it shows that its server is alive; it is removed with this object.
class ControlFolder {
 public:
  // In the root. If that path is too long for a socket or has characters special to ssh: in a
  // folder in /tmp that is always the same for this root. Also removes what killed servers left
  // there, and ends the ssh processes whose sockets are there.
  static Result<ControlFolder> open(const std::string& root);
  ControlFolder(ControlFolder&&) noexcept = default;
  ControlFolder& operator=(ControlFolder&&) = delete;
  ~ControlFolder();

  const std::string& path() const { return path_; }
  // A name that was never used before.
  std::string next_socket();
  Result<ShortLivedFile> write(std::string_view text);

 private:
  ControlFolder(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;
  std::size_t last_ = 0;
};

}  // namespace berth::places::ssh
