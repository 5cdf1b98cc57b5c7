#pragma once

#include "base/owned.hpp"

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

// Bytes and open files over a unix socket.
namespace berth::keeper {

inline constexpr std::size_t descriptors_max = 8;  // per message

// Like send(2) and recv(2), with errno. All descriptors go with the first byte. Received ones are
// close-on-exec and are appended.
ssize_t send_with(int socket, std::string_view bytes, std::span<const int> descriptors, int flags);
ssize_t receive_with(int socket, std::span<char> into, std::vector<Fd>& descriptors, int flags);

// The same, with details that recv(2) does not report.
struct Received {
  ssize_t bytes = -1;
  // The kernel dropped descriptors because this process may not have more of them.
  bool has_lost_descriptors = false;
};
Received receive_noting_loss(int socket, std::span<char> into, std::vector<Fd>& descriptors,
                             int flags);

}  // namespace berth::keeper
