#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// System calls on trees whose content is not trusted.
namespace berth::images {

// Like io_failure, but reports a full disk as `store_full`.
std::unexpected<Error> disk_failure(std::string_view action, std::string_view object,
                                    int error_number);

// Which links may be followed. None can lead out of the root.
enum class Links {
  none,
  beneath,
  as_inside,  // absolute ones too, relative to the root
};
// openat2 below a folder. On failure -1 and errno: ELOOP for a link that may not be followed, EXDEV
// for a path that leads out.
int open_beneath(int root, const std::string& path, int flags, Links links = Links::none);

// Which attributes of a layer its overlay has set as marks. The sandbox itself set all others,
// which are not trusted.
enum class OverlayMarks {
  none,     // not made by an overlay
  trusted,  // of an overlay that root mounted
  user,     // of one that was mounted with userxattr
};
// "trusted.overlay."; empty for none.
std::string_view prefix_of(OverlayMarks marks);
// Whether an attribute is an overlay mark. If a sandbox sets such a name, the kernel stores it one
// level deeper ("user.overlay.overlay.opaque"), and it is not a mark.
bool is_mark(OverlayMarks marks, std::string_view attribute);

// A file or folder whose owner may have removed their own access. That does not affect root. If
// this process is the owner and not root, the object unlocks it during its lifetime and then
// restores the mode. Any process that could observe that could have done it too.
class Unlocked {
 public:
  // If the result is empty, errno is set.
  static Unlocked open(int folder, const std::string& name, int flags);
  static Unlocked open_as_it_is(int folder, const std::string& name, int flags);
  Unlocked() = default;
  Unlocked(Unlocked&& other) noexcept = default;
  Unlocked& operator=(Unlocked&& other) = delete;
  ~Unlocked();

  int get() const { return opened_.get(); }
  explicit operator bool() const { return static_cast<bool>(opened_); }

 private:
  Fd named_;  // set only if it was locked
  mode_t mode_ = 0;
  Fd opened_;
};

// The names in a folder, in byte order.
Result<std::vector<std::string>> names_of(int folder, std::string_view object);
Result<> write_at(int fd, std::string_view bytes, std::uint64_t offset, std::string_view object);
// The target of a symbolic link; refused if it is longer.
Result<std::string> read_link(int folder, const std::string& name, std::size_t bytes_max);
// A path to `name` in an open folder, for calls that take no descriptor.
std::string path_at(int folder, std::string_view name);

}  // namespace berth::images
