#pragma once

#include <dirent.h>
#include <unistd.h>

#include <utility>

namespace berth {

// One resource with one holder. A Kind defines the raw type, the empty value, and how to release
// it.
template <class Kind>
class [[nodiscard]] Owned {
 public:
  using Raw = typename Kind::Raw;

  Owned() = default;
  explicit Owned(Raw raw) : raw_(std::move(raw)) {}
  Owned(Owned&& other) noexcept : raw_(std::exchange(other.raw_, Kind::none())) {}
  Owned& operator=(Owned&& other) noexcept {
    const Owned old{std::exchange(raw_, std::exchange(other.raw_, Kind::none()))};
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (raw_ != Kind::none()) Kind::dispose(raw_);
  }

  const Raw& get() const { return raw_; }
  explicit operator bool() const { return raw_ != Kind::none(); }
  // Hands the resource to the caller, which must dispose of it.
  [[nodiscard]] Raw release() { return std::exchange(raw_, Kind::none()); }

 private:
  Raw raw_ = Kind::none();
};

struct FdKind {
  using Raw = int;
  static Raw none() { return -1; }
  static void dispose(int fd) noexcept { ::close(fd); }
};
using Fd = Owned<FdKind>;

struct DirectoryKind {
  using Raw = DIR*;
  static Raw none() { return nullptr; }
  static void dispose(DIR* directory) noexcept { ::closedir(directory); }
};
using Directory = Owned<DirectoryKind>;

}  // namespace berth
