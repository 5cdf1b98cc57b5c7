#include "security/hostile/attempt.hpp"
#include "security/hostile/tools.hpp"

#include <arpa/inet.h>
#include <linux/if_alg.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/vm_sockets.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

// Sockets: of other families, with other permissions, to the host and beyond.
namespace berth::hostile {

namespace {

constexpr int connect_limit_ms = 1000;

Verdict made(int family, int kind, int protocol, const char* deed) {
  const Descriptor socket{::socket(family, kind | SOCK_CLOEXEC, protocol)};
  return socket ? open_to(deed) : denied();
}

Verdict raw_socket(const Bait&) {
  return made(AF_INET, SOCK_RAW, IPPROTO_ICMP, "made a raw socket");
}

Verdict packet_socket(const Bait&) {
  return made(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL), "made a packet socket");
}

Verdict vsock_socket(const Bait&) {
  return made(AF_VSOCK, SOCK_STREAM, 0, "made a socket to the hypervisor");
}

Verdict alg_socket(const Bait&) {
  const Descriptor socket{::socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  if (!socket) return denied();
  sockaddr_alg hash = {};
  hash.salg_family = AF_ALG;
  std::memcpy(hash.salg_type, "hash", 5);
  std::memcpy(hash.salg_name, "sha256", 7);
  const auto* address = reinterpret_cast<const sockaddr*>(&hash);
  return ::bind(socket.get(), address, sizeof hash) == 0 ? open_to("uses the kernel's ciphers")
                                                         : open_to("made a socket of the ciphers");
}

// Families with a history of bugs, that a workload does not need.
Verdict odd_sockets(const Bait&) {
  int error = EAFNOSUPPORT;
  for (const int family : {AF_BLUETOOTH, AF_CAN, AF_TIPC, AF_RDS, AF_AX25, AF_X25, AF_NFC, AF_KCM,
                           AF_XDP, AF_IB, AF_KEY, AF_PPPOX, AF_LLC, AF_IUCV, AF_PHONET, AF_SMC}) {
    for (const int kind : {SOCK_RAW, SOCK_DGRAM, SOCK_STREAM, SOCK_SEQPACKET}) {
      const Descriptor socket{::socket(family, kind | SOCK_CLOEXEC, 0)};
      if (socket) return open_to("made a socket of family " + std::to_string(family));
      if (errno != EAFNOSUPPORT) error = errno;
    }
  }
  return denied(error);
}

// Internet protocols that a workload does not need. If they are modules, a request for one loads it
// into the host's kernel.
Verdict odd_protocols(const Bait&) {
  struct Odd {
    int kind;
    int protocol;
  };
  constexpr int mptcp = 262;
  constexpr int smc = 256;
  constexpr int l2tp = 115;
  constexpr Odd odd[] = {{SOCK_STREAM, mptcp},
                         {SOCK_DGRAM, IPPROTO_UDPLITE},
                         {SOCK_STREAM, IPPROTO_SCTP},
                         {SOCK_SEQPACKET, IPPROTO_SCTP},
                         {SOCK_SEQPACKET, 0},
                         {SOCK_DCCP, IPPROTO_DCCP},
                         {SOCK_DCCP, 0},
                         {SOCK_STREAM, smc},
                         {SOCK_DGRAM, l2tp}};
  for (const int family : {AF_INET, AF_INET6}) {
    for (const Odd& one : odd) {
      const Descriptor socket{::socket(family, one.kind | SOCK_CLOEXEC, one.protocol)};
      if (socket) return open_to("made a socket of protocol " + std::to_string(one.protocol));
    }
  }
  return denied();
}

// The value that the loopback device already has.
Verdict set_loopback_size(const Bait& bait) {
  const Descriptor socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  ifreq device = {};
  std::memcpy(device.ifr_name, "lo", 3);
  if (!socket || ::ioctl(socket.get(), SIOCGIFMTU, &device) != 0) return denied();
  if (::ioctl(socket.get(), SIOCSIFMTU, &device) != 0) return denied();
  return namespace_of("net") == bait.network_namespace ? open_to("configured the host's loopback")
                                                       : limited("configured its own loopback");
}

struct DeviceRequest {
  nlmsghdr header;
  ifinfomsg device;
  rtattr attribute;
  char name[8];
};

// A new device is kernel surface, even if nothing is behind it.
Verdict add_device(const Bait& bait) {
  if (namespace_of("net") == bait.network_namespace) return open_to("shares the host's network");
  const Descriptor socket{::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)};
  if (!socket) return denied();
  DeviceRequest request = {};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_NEWLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  request.device.ifi_index = 1;
  request.device.ifi_change = IFF_UP;
  request.device.ifi_flags = IFF_UP;
  request.attribute.rta_len = RTA_LENGTH(3);
  request.attribute.rta_type = IFLA_IFNAME;
  std::memcpy(request.name, "lo", 3);
  if (::send(socket.get(), &request, sizeof request, 0) < 0) return denied();
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char rest[4096];
  } answer = {};
  if (::recv(socket.get(), &answer, sizeof answer, 0) < 0) return denied();
  if (answer.error.error != 0) return denied(-answer.error.error);
  return limited("configured a device of its own network");
}

// The kernel sends device events to networks that the host's root owns.
Verdict hear_device_events(const Bait&) {
  const Descriptor socket{::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT)};
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1;
  const auto* at = reinterpret_cast<const sockaddr*>(&address);
  if (!socket || ::bind(socket.get(), at, sizeof address) != 0) return denied();
  return open_to("hears of the machine's devices");
}

Verdict connected(int family, const sockaddr* address, socklen_t size, const std::string& deed) {
  const Descriptor socket{::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket) return denied();
  if (::connect(socket.get(), address, size) == 0) return open_to(deed);
  if (errno != EINPROGRESS) return denied();
  pollfd wait = {.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&wait, 1, connect_limit_ms) <= 0) return denied(ETIMEDOUT);
  int error = 0;
  socklen_t room = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &room);
  return error == 0 ? open_to(deed) : denied(error);
}

Verdict connected_to_unix(const std::string& name, std::size_t hidden, const std::string& deed) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() + hidden >= sizeof address.sun_path) return denied(ENAMETOOLONG);
  std::memcpy(address.sun_path + hidden, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + hidden + name.size());
  return connected(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), size, deed);
}

Verdict connect_abstract(const Bait& bait) {
  return connected_to_unix(bait.abstract_socket, 1, "connected to the host's abstract socket");
}

Verdict connect_path(const Bait& bait) {
  return connected_to_unix(bait.socket_path, 0, "connected to the host's socket");
}

Verdict connected_to(const char* host, std::uint16_t port, const std::string& deed) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, host, &address.sin_addr);
  return connected(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address, deed);
}

Verdict connect_loopback(const Bait& bait) {
  return connected_to("127.0.0.1", bait.port, "connected to the host's loopback");
}

// Tried only in a separate network: on the host's own the result is known without a packet.
Verdict connect_metadata(const Bait& bait) {
  if (namespace_of("net") == bait.network_namespace) return open_to("shares the host's network");
  return connected_to("169.254.169.254", 80, "connected to the cloud's metadata");
}

Verdict send_outside(const Bait& bait) {
  if (namespace_of("net") == bait.network_namespace) return open_to("shares the host's network");
  const Descriptor socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  ::inet_pton(AF_INET, "192.0.2.1", &address.sin_addr);
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  return ::sendto(socket.get(), "x", 1, 0, to, sizeof address) == 1 ? open_to("sent a datagram out")
                                                                    : denied();
}

Verdict bind_low_port(const Bait& bait) {
  const Descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(80);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* at = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.get(), at, sizeof address) != 0) return denied();
  return namespace_of("net") == bait.network_namespace ? open_to("took the host's port 80")
                                                       : limited("took port 80 of its own network");
}

constexpr Attempt attempts[] = {
    {"raw_socket", raw_socket},
    {"packet_socket", packet_socket},
    {"vsock_socket", vsock_socket},
    {"alg_socket", alg_socket},
    {"odd_socket_families", odd_sockets},
    {"odd_socket_protocols", odd_protocols},
    {"set_loopback_mtu", set_loopback_size},
    {"netlink_set_link", add_device},
    {"hear_device_events", hear_device_events},
    {"connect_host_abstract_socket", connect_abstract},
    {"connect_host_socket_path", connect_path},
    {"connect_host_loopback", connect_loopback},
    {"connect_metadata_service", connect_metadata},
    {"send_to_outside", send_outside},
    {"bind_port_80", bind_low_port},
};

}  // namespace

std::span<const Attempt> network_attempts() {
  return attempts;
}

}  // namespace berth::hostile
