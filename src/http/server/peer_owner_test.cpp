#include "http/server/peer_owner.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace berth::http {
namespace {

using boost::asio::ip::make_address;
using boost::asio::ip::tcp;

constexpr uid_t stranger = 54321;

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = sizeof bytes;

  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&bytes); }
  tcp::endpoint endpoint() const {
    tcp::endpoint out;
    std::memcpy(out.data(), &bytes, size);
    out.resize(size);
    return out;
  }
};

Address address_of(const char* host, unsigned short port) {
  const tcp::endpoint endpoint{make_address(host), port};
  Address address;
  std::memcpy(&address.bytes, endpoint.data(), endpoint.size());
  address.size = static_cast<socklen_t>(endpoint.size());
  return address;
}

// A loopback connection: the accepted end, and the client's.
class Pair {
 public:
  explicit Pair(const char* listens, const char* connects)
      : listener_(::socket(address_of(listens, 0).bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    Address here = address_of(listens, 0);
    EXPECT_EQ(::bind(listener_.get(), here.raw(), here.size), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    ::getsockname(listener_.get(), here.raw(), &here.size);
    there_ = address_of(connects, here.endpoint().port());
  }

  Fd connect() {
    Fd client{::socket(there_.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    EXPECT_EQ(::connect(client.get(), there_.raw(), there_.size), 0);
    return client;
  }
  Fd accept() { return Fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)}; }

 private:
  Fd listener_;
  Address there_;
};

std::optional<uid_t> owner_of(PeerOwner& owners, const Fd& accepted) {
  Address peer;
  Address ours;
  ::getpeername(accepted.get(), peer.raw(), &peer.size);
  ::getsockname(accepted.get(), ours.raw(), &ours.size);
  return owners.find(peer.endpoint(), ours.endpoint());
}

class PeerOwnerTest : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  Pair pair_{GetParam().first, GetParam().second};
  PeerOwner owners_;
};

TEST_P(PeerOwnerTest, IsTheUserWhoseProcessConnected) {
  const Fd client = pair_.connect();
  const Fd accepted = pair_.accept();
  EXPECT_EQ(owner_of(owners_, accepted), ::geteuid());
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(owner_of(owners_, accepted), ::geteuid()) << "who sends no more may still read";
}

TEST_P(PeerOwnerTest, IsNotTheServersUserForAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "another user cannot be made here";
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    // Only async-signal-safe calls.
    ::close(pipe[1]);
    if (::setresuid(stranger, stranger, stranger) != 0) ::_exit(1);
    const Fd client = pair_.connect();
    char byte = 0;
    const auto ended = ::read(pipe[0], &byte, 1);
    ::_exit(ended == 0 ? 0 : 1);
  }
  ::close(pipe[0]);
  const Fd accepted = pair_.accept();
  EXPECT_EQ(owner_of(owners_, accepted), stranger);
  ::close(pipe[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// The kernel reports root as the owner of a socket that no process holds: a client that sends a
// request and closes must not pass for root.
TEST_P(PeerOwnerTest, IsUnknownOnceTheClientHasClosed) {
  Fd client = pair_.connect();
  const Fd accepted = pair_.accept();
  EXPECT_EQ(::send(client.get(), "x", 1, 0), 1);
  client = {};
  EXPECT_EQ(owner_of(owners_, accepted), std::nullopt);
}

TEST_P(PeerOwnerTest, IsUnknownForAConnectionThatIsNotThere) {
  const tcp::endpoint nowhere{make_address("127.0.0.1"), 1};
  EXPECT_EQ(owners_.find(nowhere, nowhere), std::nullopt);
}

// A lookup falls back to a listener on the same port.
TEST_P(PeerOwnerTest, IsNotTheOwnerOfAListenerOnThePeersPort) {
  const Fd client = pair_.connect();
  const Fd accepted = pair_.accept();
  Address ours;
  ::getsockname(accepted.get(), ours.raw(), &ours.size);
  const tcp::endpoint listener = ours.endpoint();
  const tcp::endpoint nobody{listener.address(), 1};
  EXPECT_EQ(owners_.find(listener, nobody), std::nullopt);
}

TEST_P(PeerOwnerTest, CostsLittle) {
  const Fd client = pair_.connect();
  const Fd accepted = pair_.accept();
  constexpr int times = 1000;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) ASSERT_TRUE(owner_of(owners_, accepted));
  const auto took = std::chrono::steady_clock::now() - began;
  const auto each = std::chrono::duration_cast<std::chrono::nanoseconds>(took) / times;
  RecordProperty("ns", static_cast<int>(each.count()));
  EXPECT_LT(each, std::chrono::milliseconds{1});
}

INSTANTIATE_TEST_SUITE_P(Loopback, PeerOwnerTest,
                         testing::Values(std::pair{"127.0.0.1", "127.0.0.1"},
                                         std::pair{"::1", "::1"},
                                         std::pair{"127.0.0.1", "::ffff:127.0.0.1"},
                                         std::pair{"::", "127.0.0.1"}));

}  // namespace
}  // namespace berth::http
