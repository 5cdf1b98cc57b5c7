#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// The few system calls that this folder makes on trees whose content is not to be trusted.
namespace berth::images {

// As io_failure, but a disk without room is told apart: `store_full`.
std::unexpected<Error> disk_failure(std::string_view action, std::string_view object,
                                    int error_number);

// Which links may lie on the way. None leads out of the root in any case.
enum class Links {
  none,
  beneath,
  as_inside,  // those that begin with a slash too: it stands for the root
};
// openat2 below a folder. -1 and errno: ELOOP for a link that may not be followed, EXDEV for a way
// out.
int open_beneath(int root, const std::string& path, int flags, Links links = Links::none);

// Which attributes of a layer are the notes of the overlay that it was made under. All others are
// what the sandbox has set itself, and nothing is believed that they say.
enum class OverlayMarks {
  none,     // no overlay has made it
  trusted,  // of an overlay that root has mounted
  user,     // of one that was mounted with userxattr
};
// "trusted.overlay."; empty for none.
std::string_view prefix_of(OverlayMarks marks);
// Whether an attribute is a note of the overlay. What a sandbox has set under such a name is kept
// by the kernel one level deeper ("user.overlay.overlay.opaque"), and is none.
bool is_mark(OverlayMarks marks, std::string_view attribute);

// A file or folder of a tree whose owner may have locked themselves out. That keeps nobody out who
// is root; where this process is the owner and not root, it is unlocked for as long as this lives,
// and then as it was. Whoever could see that could have done it too.
class Unlocked {
 public:
  // errno tells why one is empty.
  static Unlocked open(int folder, const std::string& name, int flags);
  static Unlocked open_as_it_is(int folder, const std::string& name, int flags);
  Unlocked() = default;
  Unlocked(Unlocked&& other) noexcept = default;
  Unlocked& operator=(Unlocked&& other) = delete;
  ~Unlocked();

  int get() const { return opened_.get(); }
  explicit operator bool() const { return static_cast<bool>(opened_); }

 private:
  Fd named_;  // only of what was locked
  mode_t mode_ = 0;
  Fd opened_;
};

// What a folder holds, in order of bytes.
Result<std::vector<std::string>> names_of(int folder, std::string_view object);
Result<> write_at(int fd, std::string_view bytes, std::uint64_t offset, std::string_view object);
// What a symbolic link says; refused when it is longer.
Result<std::string> read_link(int folder, const std::string& name, std::size_t bytes_max);
// A path that leads to `name` in an open folder, for calls that take no descriptor.
std::string path_at(int folder, std::string_view name);

}  // namespace berth::images
