#include "keeper/plugin_worker/plugin_network.hpp"

#include "keeper/sandbox/namespaces.hpp"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace berth::keeper {
namespace {

constexpr std::uint16_t name_server_port = 53;
constexpr std::uint32_t loopback_index = 1;  // the first interface of every network namespace

struct RouteRequest {
  nlmsghdr header = {};
  rtmsg route = {};
  rtattr interface_head = {};
  std::uint32_t interface = 0;
};
static_assert(sizeof(RouteRequest) ==
              sizeof(nlmsghdr) + sizeof(rtmsg) + sizeof(rtattr) + sizeof(std::uint32_t));

struct Acknowledgement {
  nlmsghdr header = {};
  nlmsgerr outcome = {};
};

// Same as `ip route add local 0.0.0.0/0 dev lo`.
int make_all_addresses_local() {
  RouteRequest request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_NEWROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
  request.route.rtm_family = AF_INET;
  request.route.rtm_table = RT_TABLE_LOCAL;
  request.route.rtm_protocol = RTPROT_BOOT;
  request.route.rtm_scope = RT_SCOPE_HOST;
  request.route.rtm_type = RTN_LOCAL;
  request.interface_head = {.rta_len = RTA_LENGTH(sizeof request.interface), .rta_type = RTA_OIF};
  request.interface = loopback_index;
  const Fd socket{::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)};
  if (!socket) return errno;
  if (::send(socket.get(), &request, sizeof request, 0) < 0) return errno;
  // The kernel responds during the call above.
  Acknowledgement answer;
  const ssize_t got = ::recv(socket.get(), &answer, sizeof answer, MSG_DONTWAIT);
  if (got < 0) return errno;
  if (answer.header.nlmsg_type != NLMSG_ERROR) return EPROTO;
  return -answer.outcome.error;
}

struct NetworkRequest {
  int type = SOCK_STREAM;
  std::uint32_t address = INADDR_LOOPBACK;
  std::uint16_t port = 0;
};

int open_socket(const NetworkRequest& wanted, Fd& made) {
  made = Fd{::socket(AF_INET, wanted.type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!made) return errno;
  const int yes = 1;
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(wanted.port);
  address.sin_addr.s_addr = htonl(wanted.address);
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(made.get(), generic, sizeof address) != 0) return errno;
  if (wanted.type == SOCK_STREAM && ::listen(made.get(), SOMAXCONN) != 0) return errno;
  return 0;
}

}  // namespace

int open_box_network(std::span<const std::uint16_t> ports, PluginSockets& sockets) {
  if (const int error_number = sandbox::bring_up_loopback(); error_number != 0) {
    return error_number;
  }
  if (ports.empty()) return 0;  // a box without network access
  int error_number = make_all_addresses_local();
  if (error_number == 0) {
    error_number = open_socket({.type = SOCK_DGRAM, .port = name_server_port}, sockets.names_udp);
  }
  if (error_number == 0) error_number = open_socket({.port = name_server_port}, sockets.names_tcp);
  if (error_number == 0) error_number = open_socket({.port = box_proxy_port}, sockets.proxy);
  for (const std::uint16_t port : ports) {
    if (error_number != 0) break;
    PluginSockets::Door door{.port = port, .listener = {}};
    error_number = open_socket({.address = INADDR_ANY, .port = port}, door.listener);
    sockets.doors.push_back(std::move(door));
  }
  return error_number;
}

}  // namespace berth::keeper
