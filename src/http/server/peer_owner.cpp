#include "http/server/peer_owner.hpp"

#include "base/files.hpp"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace berth::http {
namespace {

namespace ip = boost::asio::ip;
using ip::tcp;

struct Question {
  nlmsghdr head;
  inet_diag_req_v2 what;
};

// An IPv4 connection is looked up as such, even if an IPv6 socket carries it.
ip::address plain(const ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return ip::make_address_v4(ip::v4_mapped, address.to_v6());
}

void put(__be32* out, const ip::address& address) {
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    std::memcpy(out, bytes.data(), bytes.size());
  } else {
    const auto bytes = address.to_v6().to_bytes();
    std::memcpy(out, bytes.data(), bytes.size());
  }
}

Question question_for(const tcp::endpoint& peer, const tcp::endpoint& ours, std::uint32_t number) {
  Question question{};
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.head.nlmsg_seq = number;
  const ip::address from = plain(peer.address());
  question.what.sdiag_family = from.is_v4() ? AF_INET : AF_INET6;
  question.what.sdiag_protocol = IPPROTO_TCP;
  question.what.idiag_states = ~0U;
  question.what.id.idiag_sport = htons(peer.port());
  question.what.id.idiag_dport = htons(ours.port());
  put(question.what.id.idiag_src, from);
  put(question.what.id.idiag_dst, plain(ours.address()));
  question.what.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  question.what.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

// The kernel reports root as the owner of a socket that no process holds any more. A lookup that
// finds no connection finds a listener on the same port. Neither is our peer.
bool is_held_connection(const inet_diag_msg& found, const Question& question) {
  const bool is_connected = found.idiag_state == TCP_ESTABLISHED ||
                            found.idiag_state == TCP_FIN_WAIT1 ||
                            found.idiag_state == TCP_FIN_WAIT2;
  return is_connected && found.idiag_inode != 0 &&
         found.id.idiag_sport == question.what.id.idiag_sport &&
         found.id.idiag_dport == question.what.id.idiag_dport;
}

// In a user namespace, all outside users share one number, which may also be a user inside.
std::optional<uid_t> stand_in_user() {
  constexpr uid_t usual = 65534;
  const Result<std::string> map = read_file("/proc/self/uid_map", 4096);
  const bool is_first = map && map->contains("4294967295");
  if (is_first) return std::nullopt;
  const Result<std::string> number = read_file("/proc/sys/kernel/overflowuid", 64);
  return number ? static_cast<uid_t>(std::strtoul(number->c_str(), nullptr, 10)) : usual;
}

}  // namespace

// Connected to the kernel, so that no other process can answer.
PeerOwner::PeerOwner()
    : socket_(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)),
      stand_in_(stand_in_user()) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const auto* address = reinterpret_cast<const sockaddr*>(&kernel);
  if (::connect(socket_.get(), address, sizeof kernel) != 0) socket_ = {};
}

std::optional<uid_t> PeerOwner::find(const tcp::endpoint& peer, const tcp::endpoint& ours) {
  const Question question = question_for(peer, ours, ++sequence_);
  const ssize_t sent = ::send(socket_.get(), &question, sizeof question, MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(sizeof question)) return std::nullopt;
  alignas(nlmsghdr) std::array<char, 4096> answer{};
  while (true) {
    const ssize_t size = ::recv(socket_.get(), answer.data(), answer.size(), MSG_DONTWAIT);
    if (size < static_cast<ssize_t>(sizeof(nlmsghdr))) return std::nullopt;
    const auto* head = reinterpret_cast<const nlmsghdr*>(answer.data());
    if (head->nlmsg_seq != sequence_) continue;  // the response to an abandoned query
    const bool is_whole = size >= static_cast<ssize_t>(NLMSG_LENGTH(sizeof(inet_diag_msg))) &&
                          head->nlmsg_type == SOCK_DIAG_BY_FAMILY;
    if (!is_whole) return std::nullopt;
    const auto* found = static_cast<const inet_diag_msg*>(NLMSG_DATA(head));
    if (!is_held_connection(*found, question)) return std::nullopt;
    if (found->idiag_uid == stand_in_) return std::nullopt;
    return found->idiag_uid;
  }
}

}  // namespace berth::http
