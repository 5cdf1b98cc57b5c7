#pragma once

#include "base/owned.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace berth::http {

// Asks the kernel which local user holds the other end of a loopback connection (NETLINK_SOCK_DIAG,
// one exact lookup). The kernel answers within the call, so nothing waits.
class PeerOwner {
 public:
  PeerOwner();

  // Nothing if the kernel does not know: the peer is not a socket of this network namespace, or no
  // process holds it any more.
  std::optional<uid_t> find(const boost::asio::ip::tcp::endpoint& peer,
                            const boost::asio::ip::tcp::endpoint& ours);

 private:
  Fd socket_;
  std::optional<uid_t> stand_in_;  // the number the kernel shows for users that it cannot map
  std::uint32_t sequence_ = 0;
};

}  // namespace berth::http
