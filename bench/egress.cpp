// egress_cost: what a sandbox's proxy costs, compared with a direct connection, measured
// alternately. Prints three pairs, through the proxy and direct: microseconds of a small GET on its
// own connection; the same through a tunnel that is opened for it; MB/s of one long response
// through a tunnel.

#include "base/async/task_group.hpp"
#include "egress/proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace berth;

constexpr int rounds = 7;
constexpr int requests_per_round = 300;
constexpr std::size_t long_answer_bytes = 1'000'000'000;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "egress_cost: %s\n", why.c_str());
  std::exit(1);
}

struct Listener {
  Fd fd;
  unsigned short port = 0;
};

sockaddr_in loopback(unsigned short port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Listener listen() {
  Listener made{.fd = Fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}};
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (::bind(made.fd.get(), raw, size) != 0 || ::listen(made.fd.get(), 128) != 0) {
    give_up("cannot listen");
  }
  ::getsockname(made.fd.get(), raw, &size);
  made.port = ntohs(address.sin_port);
  return made;
}

Fd connect_to(unsigned short port) {
  Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const sockaddr_in address = loopback(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    give_up("cannot connect");
  }
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string read_head(int fd) {
  std::string text;
  std::array<char, 4096> chunk{};
  while (!text.contains("\r\n\r\n")) {
    const ssize_t got = ::recv(fd, chunk.data(), chunk.size(), 0);
    if (got <= 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::size_t drop_all(int fd) {
  static std::vector<char> chunk(256UL * 1024);
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0;) {
    got = ::recv(fd, chunk.data(), chunk.size(), 0);
    if (got > 0) size += static_cast<std::size_t>(got);
  }
  return size;
}

// "GET /long" gets a long response, everything else a short one.
void serve(int listener) {
  const std::string block(256UL * 1024, 'x');
  while (true) {
    const Fd client{::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)};
    if (!client) return;
    const std::string head = read_head(client.get());
    if (!head.starts_with("GET /long")) {
      send_all(client.get(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
      continue;
    }
    for (std::size_t left = long_answer_bytes; left > 0;) {
      const std::size_t size = std::min(left, block.size());
      if (!send_all(client.get(), std::string_view{block}.substr(0, size))) break;
      left -= size;
    }
  }
}

class NoNames final : public egress::Resolver {
 public:
  Task<std::vector<egress::Address>> resolve(std::string name) override {
    co_return fail(Errc::server_unreachable, name + " has no address");
  }
};

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// How to reach the site: directly, as a client of the proxy, or through a tunnel.
class Visitor {
 public:
  enum class Way { direct, proxy, tunnel };
  Visitor(unsigned short site, unsigned short proxy) : site_(site), proxy_(proxy) {}

  void small(Way way) const {
    const Fd fd = open(way);
    send_all(fd.get(), request(way, "/"));
    if (!read_head(fd.get()).contains(" 200 ")) give_up("no answer");
  }
  void large(Way way) const {
    const Fd fd = open(way);
    send_all(fd.get(), request(way, "/long"));
    if (drop_all(fd.get()) != long_answer_bytes) give_up("the answer is cut");
  }

 private:
  Fd open(Way way) const {
    Fd fd = connect_to(way == Way::direct ? site_ : proxy_);
    if (way != Way::tunnel) return fd;
    const std::string authority = "127.0.0.1:" + std::to_string(site_);
    send_all(fd.get(), "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
    if (!read_head(fd.get()).contains(" 200 ")) give_up("no tunnel");
    return fd;
  }
  std::string request(Way way, const std::string& path) const {
    const std::string authority = "127.0.0.1:" + std::to_string(site_);
    const std::string target = way == Way::proxy ? "http://" + authority + path : path;
    return "GET " + target + " HTTP/1.1\r\nHost: " + authority + "\r\nConnection: close\r\n\r\n";
  }

  unsigned short site_;
  unsigned short proxy_;
};

void measure(const Visitor& visitor) {
  using Way = Visitor::Way;
  std::array<std::vector<double>, 3> small;
  std::array<std::vector<double>, 2> large;
  const auto small_us = [&](Way way) {
    return seconds([&] {
             for (int i = 0; i < requests_per_round; ++i) visitor.small(way);
           }) *
           1e6 / requests_per_round;
  };
  const auto large_mb = [&](Way way) {
    return static_cast<double>(long_answer_bytes) / 1e6 / seconds([&] { visitor.large(way); });
  };
  for (int round = 0; round < rounds; ++round) {
    small[0].push_back(small_us(Way::proxy));
    small[1].push_back(small_us(Way::direct));
    small[2].push_back(small_us(Way::tunnel));
    large[0].push_back(large_mb(Way::tunnel));
    large[1].push_back(large_mb(Way::direct));
  }
  const double direct_us = median(small[1]);
  std::printf("%.1f %.1f %.1f %.1f %.0f %.0f\n", median(small[0]), direct_us, median(small[2]),
              direct_us, median(large[0]), median(large[1]));
}

}  // namespace

int main() {
  const Listener site = listen();
  std::thread server{[&] { serve(site.fd.get()); }};
  Listener door = listen();
  auto policy = egress::Policy::parse(
      {.allow = {{"127.0.0.1/32:" + std::to_string(site.port)}}, .deny = {}, .log = {}});
  if (!policy) give_up(policy.error().message);
  asio::io_context loop{1};
  NoNames resolver;
  const SystemClock clock;
  egress::Proxy proxy{loop, resolver, clock,
                      egress::ProxyOptions{.lease = "bench", .policy = *std::move(policy)}};
  if (!proxy.listen(std::move(door.fd))) give_up("the proxy does not listen");
  TaskGroup tasks{loop.get_executor()};
  std::thread serving{[&] { loop.run(); }};
  measure(Visitor{site.port, door.port});
  asio::post(loop, [&] { tasks.start("stop", proxy.stop()); });
  serving.join();
  ::shutdown(site.fd.get(), SHUT_RDWR);
  server.join();
  return 0;
}
