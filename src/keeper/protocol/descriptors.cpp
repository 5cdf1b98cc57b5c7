#include "keeper/protocol/descriptors.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace berth::keeper {
namespace {

struct alignas(cmsghdr) Control {
  char bytes[CMSG_SPACE(descriptors_max * sizeof(int))];
};

}  // namespace

ssize_t send_with(int socket, std::string_view bytes, std::span<const int> descriptors, int flags) {
  if (descriptors.size() > descriptors_max) {
    errno = EINVAL;
    return -1;
  }
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  if (!descriptors.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket, &message, flags);
}

ssize_t receive_with(int socket, std::span<char> into, std::vector<Fd>& descriptors, int flags) {
  return receive_noting_loss(socket, into, descriptors, flags).bytes;
}

Received receive_noting_loss(int socket, std::span<char> into, std::vector<Fd>& descriptors,
                             int flags) {
  iovec part{.iov_base = into.data(), .iov_len = into.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  if (got < 0) return {.bytes = got};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  // The buffer holds descriptors_max, so a truncation means that this process hit its own limit.
  return {.bytes = got, .has_lost_descriptors = (message.msg_flags & MSG_CTRUNC) != 0};
}

}  // namespace berth::keeper
