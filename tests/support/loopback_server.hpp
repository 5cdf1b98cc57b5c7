#pragma once

#include "base/owned.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace berth::tests {

// A request as the test server received it.
struct SeenRequest {
  std::string line;  // "GET /api/health HTTP/1.1"
  std::string head;
  std::string body;

  std::string header(const std::string& name) const;
};

// A minimal real server on a loopback port: one connection at a time, one raw response per request.
class LoopbackServer {
 public:
  using Answer = std::function<std::string(const SeenRequest&)>;
  explicit LoopbackServer(Answer answer);
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;
  ~LoopbackServer();

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<SeenRequest> seen() const;

 private:
  void serve();
  void serve_one(int connection);

  Answer answer_;
  Fd listener_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<SeenRequest> seen_;
  std::jthread thread_;
};

inline std::string SeenRequest::header(const std::string& name) const {
  const std::size_t at = head.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t start = at + name.size() + 4;
  return head.substr(start, head.find("\r\n", start) - start);
}

inline LoopbackServer::LoopbackServer(Answer answer)
    : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener_.get(), 16), 0);
  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread{[this] { serve(); }};
}

inline LoopbackServer::~LoopbackServer() {
  ::shutdown(listener_.get(), SHUT_RDWR);  // accept returns, and the thread ends
}

inline std::vector<SeenRequest> LoopbackServer::seen() const {
  const std::lock_guard lock{mutex_};
  return seen_;
}

inline void LoopbackServer::serve() {
  while (true) {
    const Fd connection{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!connection) return;
    serve_one(connection.get());
  }
}

inline void LoopbackServer::serve_one(int connection) {
  std::string text;
  std::array<char, 4096> chunk{};
  std::size_t wanted = std::string::npos;
  while (text.size() < wanted) {
    const ssize_t got = ::recv(connection, chunk.data(), chunk.size(), 0);
    if (got <= 0) return;
    text.append(chunk.data(), static_cast<std::size_t>(got));
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos) continue;
    const SeenRequest head{"", text.substr(0, end + 2), ""};
    const std::string length = head.header("Content-Length");
    wanted = end + 4 + (length.empty() ? 0 : std::stoul(length));
  }
  const std::size_t end = text.find("\r\n\r\n");
  SeenRequest request{text.substr(0, text.find("\r\n")), text.substr(0, end + 2),
                      text.substr(end + 4)};
  {
    const std::lock_guard lock{mutex_};
    seen_.push_back(request);
  }
  const std::string answer = answer_(request);
  // Byte by byte in places, so that the client sees every split that the network could make.
  for (std::size_t at = 0; at < answer.size();) {
    const std::size_t size = at < 200 ? 1 : answer.size() - at;
    const ssize_t sent = ::send(connection, answer.data() + at, size, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<std::size_t>(sent);
  }
}

inline std::string http_answer(int status, const std::string& body,
                               const std::string& headers = {}) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace berth::tests
