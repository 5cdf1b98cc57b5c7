#pragma once

#include "base/owned.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace berth::http {

// Asks the kernel which user of this machine holds the other end of a loopback connection
// (NETLINK_SOCK_DIAG, one exact lookup). The kernel answers within the call that asks, so that
// nothing waits.
class PeerOwner {
 public:
  PeerOwner();

  // Nothing where the kernel does not know: the peer is not a socket of this network namespace, or
  // no process holds it any more.
  std::optional<uid_t> find(const boost::asio::ip::tcp::endpoint& peer,
                            const boost::asio::ip::tcp::endpoint& ours);

 private:
  Fd socket_;
  std::optional<uid_t> stand_in_;  // under which the kernel shows users that it cannot name to us
  std::uint32_t sequence_ = 0;
};

}  // namespace berth::http
