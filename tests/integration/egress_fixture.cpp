#include "egress_fixture.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace berth::egress_test {
namespace {

constexpr auto patience = 30s;

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

SocketAddress socket_address(const std::string& text, unsigned short port) {
  SocketAddress made;
  if (text.contains(':')) {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    ::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr);
    std::memcpy(&made.storage, &v6, sizeof v6);
    made.size = sizeof v6;
  } else {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    ::inet_pton(AF_INET, text.c_str(), &v4.sin_addr);
    std::memcpy(&made.storage, &v4, sizeof v4);
    made.size = sizeof v4;
  }
  return made;
}

}  // namespace

std::string Answer::header(const std::string& name) const {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t start = at + name.size() + 4;
  return head.substr(start, head.find("\r\n", start) - start);
}

Wire::Wire(Fd fd) : fd_(std::move(fd)) {
  const timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

Wire Wire::connect_to(unsigned short port) {
  Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const SocketAddress to = socket_address("127.0.0.1", port);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size), 0);
  return Wire{std::move(fd)};
}

bool Wire::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void Wire::end_of_sending() const {
  ::shutdown(fd_.get(), SHUT_WR);
}

void Wire::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

bool Wire::more() {
  std::array<char, 65536> chunk{};
  const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    ADD_FAILURE() << "nothing came within the time; so far: " << buffer_.substr(0, 2000);
  }
  if (got <= 0) return false;
  buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  return true;
}

std::string Wire::take(std::size_t size) {
  std::string taken = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return taken;
}

std::string Wire::read_until(std::string_view end) {
  while (!buffer_.contains(end)) {
    if (!more()) return std::exchange(buffer_, {});
  }
  return take(buffer_.find(end) + end.size());
}

std::string Wire::read_bytes(std::size_t size) {
  while (buffer_.size() < size) {
    if (!more()) return std::exchange(buffer_, {});
  }
  return take(size);
}

std::string Wire::read_all() {
  while (more()) {
  }
  return std::exchange(buffer_, {});
}

std::string Wire::read_chunks() {
  std::string content;
  while (true) {
    const std::string line = read_until("\r\n");
    const std::size_t size = std::strtoul(line.c_str(), nullptr, 16);
    if (!line.ends_with("\r\n")) return content + "(cut)";
    const std::string piece = read_bytes(size + 2);
    if (piece.size() != size + 2) return content + "(cut)";
    if (size == 0) return content;
    content += piece.substr(0, size);
  }
}

Answer Wire::read_answer() {
  Answer answer{.head = read_until("\r\n\r\n")};
  if (!answer.head.starts_with("HTTP/1.") || !answer.head.ends_with("\r\n\r\n")) return answer;
  answer.status = std::atoi(answer.head.c_str() + 9);
  const std::string length = answer.header("Content-Length");
  if (answer.status == 200 && answer.head.contains("Connection established")) return answer;
  if (!length.empty()) {
    answer.body = read_bytes(std::stoul(length));
  } else if (answer.header("Transfer-Encoding") == "chunked") {
    answer.body = read_chunks();
  } else if (answer.status >= 200 && answer.status != 204) {
    answer.body = read_all();
  }
  return answer;
}

Answer Wire::ask(std::string_view request) {
  send(request);
  return read_answer();
}

Listener listen_on(const std::string& address, unsigned short port) {
  Listener made;
  SocketAddress at = socket_address(address, port);
  made.fd = Fd{::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  auto* const raw = reinterpret_cast<sockaddr*>(&at.storage);
  EXPECT_EQ(::bind(made.fd.get(), raw, at.size), 0) << address;
  EXPECT_EQ(::listen(made.fd.get(), 1024), 0);
  ::getsockname(made.fd.get(), raw, &at.size);
  made.port = ntohs(reinterpret_cast<const sockaddr_in*>(&at.storage)->sin_port);
  return made;
}

Upstream::Upstream(Serve serve, Listener listener)
    : serve_(std::move(serve)),
      listener_(std::move(listener)),
      port_(listener_.port),
      accepting_([this] { accept_all(); }) {}

Upstream::~Upstream() {
  ::shutdown(listener_.fd.get(), SHUT_RDWR);
  accepting_.join();
  {
    const std::lock_guard lock{mutex_};
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }
  threads_.clear();
}

void Upstream::accept_all() {
  while (true) {
    Fd fd{::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!fd) return;
    ++connections_;
    const int raw = fd.get();
    {
      const std::lock_guard lock{mutex_};
      open_.push_back(raw);
    }
    threads_.emplace_back([this, raw, wire = Wire{std::move(fd)}]() mutable {
      serve_(wire);
      const std::lock_guard lock{mutex_};
      std::erase(open_, raw);
      wire.close();
    });
  }
}

void mirror(Wire& wire) {
  const std::string head = wire.read_until("\r\n\r\n");
  if (!head.ends_with("\r\n\r\n")) return;
  std::string body = head;
  const Answer seen{.status = 0, .head = head, .body = {}};
  if (const std::string length = seen.header("Content-Length"); !length.empty()) {
    body += wire.read_bytes(std::stoul(length));
  } else if (seen.header("Transfer-Encoding") == "chunked") {
    body += wire.read_until("0\r\n\r\n");
  }
  wire.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
            "\r\nConnection: close\r\n\r\n" + body);
}

Task<std::vector<egress::Address>> ScriptedResolver::resolve(std::string name) {
  const std::size_t turn = asked[name]++;
  if (held_) co_await held_->async_wait(asio::as_tuple(asio::use_awaitable));
  const auto found = answers.find(name);
  if (found == answers.end()) co_return fail(Errc::server_unreachable, name + " has no address");
  std::vector<egress::Address> addresses;
  for (const std::string& text : found->second[std::min(turn, found->second.size() - 1)]) {
    addresses.push_back(*egress::Address::parse(text));
  }
  co_return addresses;
}

void ScriptedResolver::hold(const asio::any_io_executor& executor) {
  held_.emplace(executor, asio::steady_timer::time_point::max());
}

std::vector<egress::SpecialRange> LabPlan::special_but_loopback() {
  auto ranges = egress::special_ranges();
  std::erase_if(ranges, [](const auto& range) {
    return range.name == "loopback" && range.range.first.family == egress::Address::Family::v4;
  });
  return ranges;
}

Lab::Lab(LabPlan setup) : special_(setup.special) {
  const Result<egress::Policy> policy = egress::Policy::parse(
      {.allow = std::move(setup.allow), .deny = std::move(setup.deny), .log = {}}, special_);
  EXPECT_TRUE(policy) << (policy ? "" : policy.error().message);
  // A deadline is noticed soon after it has passed.
  setup.limits.sweep_interval = 10ms;
  tasks_.emplace(loop_.get_executor());
  if (setup.resolver) other_resolver_ = setup.resolver(loop_.get_executor());
  proxy_.emplace(loop_, other_resolver_ ? *other_resolver_ : resolver, clock_,
                 egress::ProxyOptions{.lease = "test",
                                      .policy = policy.value_or(egress::Policy{}),
                                      .limits = setup.limits,
                                      .callback = std::move(setup.callback),
                                      .own_ports = std::move(setup.own_ports),
                                      .log_path = std::move(setup.log_path)});
  Listener listener = listen_on("127.0.0.1");
  port_ = listener.port;
  EXPECT_TRUE(proxy_->listen(std::move(listener.fd)));
  thread_ = std::thread{[this, prepare = std::move(setup.prepare)] {
    if (prepare) prepare();
    loop_.run();
  }};
}

Lab::~Lab() {
  if (thread_.joinable()) stop();
}

void Lab::stop() {
  boost::asio::post(loop_, [this] { tasks_->start("test.stop", proxy_->stop()); });
  thread_.join();  // the loop has nothing left to do
  EXPECT_EQ(proxy_->traffic().connections, 0U);
}

Wire Lab::tunnel(const std::string& authority) const {
  Wire wire = client();
  const Answer answer = wire.ask(connect(authority));
  EXPECT_EQ(answer.status, 200) << answer.head << answer.body;
  return wire;
}

void Lab::listen(Fd fd, egress::Door door) {
  const bool listens = on_loop([&] { return proxy_->listen(std::move(fd), door).has_value(); });
  EXPECT_TRUE(listens);
}

void Lab::set_rules(std::vector<std::string> allow, std::vector<std::string> deny) {
  auto policy = egress::Policy::parse(
      {.allow = std::move(allow), .deny = std::move(deny), .log = {}}, special_);
  ASSERT_TRUE(policy);
  on_loop([&] {
    proxy_->set_policy(*std::move(policy));
    return true;
  });
}

std::vector<egress::LogEntry> Lab::decisions() {
  return on_loop([this] { return proxy_->decisions(1000); });
}

egress::Traffic Lab::traffic() {
  return on_loop([this] { return proxy_->traffic(); });
}

bool Lab::until(const std::function<bool(const egress::Traffic&)>& wanted) {
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < limit) {
    if (wanted(traffic())) return true;
    std::this_thread::yield();
  }
  return false;
}

egress::LogEntry Lab::entry_after(std::uint64_t requests) {
  EXPECT_TRUE(until([&](const egress::Traffic& now) { return now.requests >= requests; }));
  const auto entries = decisions();
  return entries.empty() ? egress::LogEntry{} : entries.back();
}

std::string get(const std::string& authority, const std::string& path, const std::string& fields) {
  return "GET http://" + authority + path + " HTTP/1.1\r\nHost: " + authority + "\r\n" + fields +
         "\r\n";
}

std::string connect(const std::string& authority) {
  return "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
}

}  // namespace berth::egress_test
