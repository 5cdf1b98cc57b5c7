#pragma once

#include "base/async/task_group.hpp"
#include "base/owned.hpp"
#include "http/server/server.hpp"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>

// A real server on a loopback port in its own thread, and a client that sends exactly the given
// bytes.
namespace berth::http_test {

// Admits every caller as the local operator, except with these test header fields: "Bearer
// viewer-12" is a viewer of company 1 with token 2.
class TestGate final : public http::Gate {
 public:
  Task<core::Caller> identify(const http::Request& request) override {
    ++identified;
    const bool is_revoked = revoked && request.header("authorization") == "Bearer fleeting";
    if (is_revoked || request.header("authorization") == "Bearer wrong") {
      co_return fail(Errc::unauthenticated, "the token is not known");
    }
    if (request.header("host") == "evil.example") {
      co_return fail(Errc::untrusted_host, "host 'evil.example' is not served here");
    }
    core::Caller caller{.kind = core::CallerKind::local_operator, .role = core::Role::admin};
    const std::string key = request.header("authorization").value_or("");
    if (key == "Bearer key") caller.kind = core::CallerKind::operator_key;
    if (key.starts_with(viewer_key) && key.size() == viewer_key.size() + 2) {
      caller = {.kind = core::CallerKind::operator_key, .role = core::Role::viewer};
      caller.company_id = id_of<core::CompanyId>(key[viewer_key.size()]);
      caller.token_id = id_of<core::TokenId>(key[viewer_key.size() + 1]);
    }
    co_return caller;
  }

  std::atomic<bool> revoked = false;
  std::atomic<int> identified = 0;

 private:
  // Two digits follow: of the company and of the token.
  static constexpr std::string_view viewer_key = "Bearer viewer-";

  template <class Id>
  static Id id_of(char digit) {
    return Id::parse(std::string{"00000000-0000-4000-8000-00000000000"} + digit).value();
  }
};

class TestObserver final : public http::Observer {
 public:
  void request_finished(std::string_view route, std::string_view verb, unsigned status,
                        std::chrono::nanoseconds /*took*/) override {
    last = std::string{verb} + " " + std::string{route} + " " + std::to_string(status);
    ++requests;
  }
  void connections_changed(std::size_t open) override { connections = open; }
  void streams_changed(std::size_t open) override { streams = open; }
  void stream_evicted() override { ++evicted; }

  std::string last;  // read it once the server has stopped
  std::atomic<int> requests = 0;
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::size_t> streams = 0;
  std::atomic<int> evicted = 0;
};

class TestServer {
 public:
  explicit TestServer(std::vector<http::Route> routes, http::Limits limits = {},
                      std::optional<http::Tls> tls = {})
      : server_(loop_, {.limits = limits, .tls = std::move(tls)}, std::move(routes), gate_,
                observer),
        tasks_(loop_.get_executor()) {
    const Result<unsigned short> port = server_.listen();
    EXPECT_TRUE(port) << (port ? "" : port.error().message);
    port_ = port.value_or(0);
    tasks_.start("test.accept", server_.accept());
    thread_ = std::thread{[this] { loop_.run(); }};
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() {
    if (thread_.joinable()) stop(std::chrono::milliseconds{100});
  }

  unsigned short port() const { return port_; }
  // From now on "Bearer fleeting" is unknown.
  void revoke() { gate_.revoked = true; }
  // How often a caller was looked up.
  int identified() const { return gate_.identified; }
  void begin_drain(std::chrono::milliseconds grace) {
    asio::post(loop_, [this, grace] { tasks_.start("test.drain", server_.drain(grace)); });
  }
  // Drains, and returns when the loop has no work left.
  void stop(std::chrono::milliseconds grace) {
    begin_drain(grace);
    join();
  }
  void join() { thread_.join(); }
  asio::io_context& loop() { return loop_; }

  TestObserver observer;

 private:
  asio::io_context loop_{1};
  TestGate gate_;
  http::Server server_;
  TaskGroup tasks_;
  std::thread thread_;
  unsigned short port_ = 0;
};

struct Answer {
  int status = 0;                              // 0: the connection ended before a whole response
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// A blocking client over bytes. Any wait fails the test after ten seconds.
class Client {
 public:
  explicit Client(unsigned short port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }

  int fd() const { return fd_.get(); }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void end_of_sending() { ::shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_ = {}; }
  // With a reset, like a process that was killed before it had read everything.
  void break_off() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }

  // More bytes into the buffer; false at the end of the connection.
  bool more() {
    std::array<char, 16384> chunk{};
    const auto got = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      ADD_FAILURE() << "nothing came within the time; so far: " << buffer_;
    }
    if (got <= 0) return false;
    buffer_.append(chunk.data(), static_cast<std::size_t>(got));
    return true;
  }

  // Everything up to and including `end`, or what came before the connection ended.
  std::string read_until(std::string_view end) {
    while (!buffer_.contains(end)) {
      if (!more()) return std::exchange(buffer_, {});
    }
    return take(buffer_.find(end) + end.size());
  }
  std::string read_bytes(std::size_t size) {
    while (buffer_.size() < size) {
      if (!more()) return std::exchange(buffer_, {});
    }
    return take(size);
  }
  std::string read_all() {
    while (more()) {
    }
    return std::exchange(buffer_, {});
  }
  bool closed_by_server() { return read_all().empty(); }

  enum class Body { present, absent };
  Answer read_answer(Body body = Body::present) {
    const std::string head = read_until("\r\n\r\n");
    Answer answer;
    if (!head.starts_with("HTTP/1.") || head.size() < 12) return answer;
    answer.status = std::atoi(head.c_str() + 9);
    std::size_t at = head.find("\r\n") + 2;
    while (at + 2 < head.size()) {
      const std::size_t colon = head.find(':', at);
      const std::size_t end = head.find("\r\n", at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      answer.headers[name] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    if (body == Body::present && answer.headers.contains("content-length")) {
      answer.body = read_bytes(std::stoul(answer.headers["content-length"]));
    }
    return answer;
  }

  Answer ask(std::string_view request) {
    EXPECT_TRUE(send(request));
    return read_answer();
  }

 private:
  std::string take(std::size_t size) {
    std::string taken = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return taken;
  }

  Fd fd_;
  std::string buffer_;
};

// "GET /path" with the header lines that every request needs.
inline std::string request(std::string_view line, std::string_view fields = {},
                           std::string_view body = {}) {
  std::string text{line};
  text += " HTTP/1.1\r\nHost: localhost\r\n";
  text += fields;
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + std::string{body};
}

inline std::string json_request(std::string_view line, std::string_view body,
                                std::string_view fields = {}) {
  return request(line, std::string{"Content-Type: application/json\r\n"} + std::string{fields},
                 body);
}

}  // namespace berth::http_test
