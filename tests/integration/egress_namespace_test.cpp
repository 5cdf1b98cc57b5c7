#include "egress_room.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

// The whole path: a client in a network namespace with only a loopback, a proxy whose machine is
// another namespace with public addresses, and the default special ranges.
namespace berth::egress_test {
namespace {

constexpr unsigned short proxy_port = 3128;

// A process in its own namespace, which listens there, and connects from there on request. It hands
// its sockets out, so that the test holds sockets of the inside.
class Inside {
 public:
  Inside() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
    channel_ = Fd{pair[0]};
    child_ = ::fork();
    if (child_ == 0) {
      // A copy of another one's listener would keep that alive.
      ::dup2(pair[1], 3);
      ::close_range(4, ~0U, 0);
      live(3);
      ::_exit(0);
    }
    ::close(pair[1]);
    Reply first = receive();
    error = first.error;
    listener = std::move(first.fd);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    channel_ = {};
    ::waitpid(child_, nullptr, 0);
  }

  struct Reply {
    int error = 0;
    Fd fd;
  };
  // A connection from the inside to this address.
  Reply connect(const char* address, unsigned short port) {
    sockaddr_storage to{};
    if (std::strchr(address, ':') != nullptr) {
      auto* v6 = reinterpret_cast<sockaddr_in6*>(&to);
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(port);
      ::inet_pton(AF_INET6, address, &v6->sin6_addr);
    } else {
      auto* v4 = reinterpret_cast<sockaddr_in*>(&to);
      v4->sin_family = AF_INET;
      v4->sin_port = htons(port);
      ::inet_pton(AF_INET, address, &v4->sin_addr);
    }
    EXPECT_EQ(::send(channel_.get(), &to, sizeof to, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof to));
    return receive();
  }
  Wire client() { return Wire{std::move(connect("127.0.0.1", proxy_port).fd)}; }

  int error = 0;
  Fd listener;

 private:
  // Only system calls from here on: the process has other threads, which are not in this copy.
  static void live(int channel) {
    const int flags = ::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER;
    if (::unshare(flags) != 0 || !raise_loopback()) return reply(channel, errno, -1);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_port = htons(proxy_port);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool listens = ::bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0 &&
                         ::listen(fd, 128) == 0;
    reply(channel, listens ? 0 : errno, fd);
    ::close(fd);
    sockaddr_storage to{};
    while (::recv(channel, &to, sizeof to, 0) == static_cast<ssize_t>(sizeof to)) {
      const int made = ::socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const socklen_t size = to.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      const bool connected = ::connect(made, reinterpret_cast<const sockaddr*>(&to), size) == 0;
      reply(channel, connected ? 0 : errno, connected ? made : -1);
      ::close(made);
    }
  }

  static void reply(int channel, int error_number, int fd) {
    iovec text{.iov_base = &error_number, .iov_len = sizeof error_number};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
    msghdr message{};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    if (fd >= 0) {
      message.msg_control = room.data();
      message.msg_controllen = room.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    ::sendmsg(channel, &message, MSG_NOSIGNAL);
  }

  Reply receive() {
    Reply got;
    iovec text{.iov_base = &got.error, .iov_len = sizeof got.error};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
    msghdr message{};
    message.msg_iov = &text;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = room.size();
    if (::recvmsg(channel_.get(), &message, MSG_CMSG_CLOEXEC) <= 0) got.error = EPIPE;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      got.fd = Fd{fd};
    }
    return got;
  }

  Fd channel_;
  pid_t child_ = 0;
};

TEST(EgressNamespace, TheSandboxHasNoWayOutButTheProxy) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give the proxy a machine of its own";
  Inside inside;
  if (inside.error != 0) GTEST_SKIP() << "no network namespace: " << std::strerror(inside.error);
  bool apart = false;
  bool has_v6 = false;
  Lab lab{{.allow = {"site.test", "[2606:2800:220:1::1]:80", "10.9.9.9/32"},
           .special = egress::special_ranges(),
           .prepare = [&] {
             apart = ::unshare(CLONE_NEWNET) == 0 && raise_loopback();
             if (!apart) return;
             add_address_v4(public_v4);
             has_v6 = add_address_v6(public_v6);
           }}};
  lab.resolver.answers["site.test"] = {{public_v4}};
  lab.listen(std::move(inside.listener));
  ASSERT_TRUE(apart);
  const Upstream site{mirror, lab.on_loop([] { return listen_on(public_v4, 80); })};
  // A listener on the loopback of the proxy's own machine, which must remain unreachable.
  const Upstream own{mirror, lab.on_loop([] { return listen_on("127.0.0.1", 80); })};

  EXPECT_EQ(inside.connect(public_v4, 80).error, ENETUNREACH);
  EXPECT_EQ(inside.connect("10.9.9.9", 80).error, ENETUNREACH);
  EXPECT_EQ(inside.connect("127.0.0.1", 80).error, ECONNREFUSED);
  EXPECT_EQ(inside.connect("127.0.0.1", lab.port()).error, ECONNREFUSED);
  EXPECT_NE(inside.connect("169.254.169.254", 80).error, 0);

  EXPECT_EQ(inside.client().ask(get("site.test")).status, 200);
  Wire tunnel = inside.client();
  EXPECT_EQ(tunnel.ask(connect("site.test:80")).status, 200);
  EXPECT_EQ(tunnel.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").status, 200);
  EXPECT_EQ(inside.client().ask(get("other.test")).status, 403);
  EXPECT_EQ(inside.client().ask(get(public_v4)).status, 403);
  EXPECT_EQ(inside.client().ask(get("127.0.0.1")).status, 403);
  EXPECT_EQ(inside.client().ask(connect("127.0.0.1:80")).status, 403);
  EXPECT_EQ(inside.client().ask(connect("[::1]:80")).status, 403);
  // Allowed, but no such machine exists: the proxy tries, and the sandbox gets the failure.
  EXPECT_EQ(inside.client().ask(get("10.9.9.9")).status, 502);
  EXPECT_EQ(site.connections(), 2);
  EXPECT_EQ(own.connections(), 0);
  if (!has_v6) return;
  const Upstream modern{mirror, lab.on_loop([] { return listen_on(public_v6, 80); })};
  EXPECT_EQ(inside.client().ask(get("[2606:2800:220:1::1]")).status, 200);
}

TEST(EgressNamespace, TwoSandboxesHaveTheirOwnProxies) {
  Inside one;
  Inside two;
  if (one.error != 0) GTEST_SKIP() << "no network namespace: " << std::strerror(one.error);
  const Upstream site{mirror};
  Lab first{{.allow = {site.authority("127.0.0.1")}}};
  Lab second{{}};
  first.listen(std::move(one.listener));
  second.listen(std::move(two.listener));
  EXPECT_EQ(one.client().ask(get(site.authority("127.0.0.1"))).status, 200);
  EXPECT_EQ(two.client().ask(get(site.authority("127.0.0.1"))).status, 403);
  // When the lease ends the network access ends, although the namespace still exists.
  first.stop();
  EXPECT_EQ(one.connect("127.0.0.1", proxy_port).error, ECONNREFUSED);
  EXPECT_EQ(two.client().ask(get("other.test")).status, 403);
}

}  // namespace
}  // namespace berth::egress_test
