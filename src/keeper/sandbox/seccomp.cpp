#include "keeper/sandbox/seccomp.hpp"

#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace berth::keeper::sandbox {

int install_filter(std::span<const sock_filter> program) {
  const sock_fprog filter{.len = static_cast<unsigned short>(program.size()),
                          .filter = const_cast<sock_filter*>(program.data())};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0 ? 0 : errno;
}

}  // namespace berth::keeper::sandbox
