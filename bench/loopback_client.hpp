#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// An HTTP client that costs almost nothing beside the server that it measures. Anything unexpected
// ends the program: a benchmark has nothing to recover.
namespace bench {

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

struct Answer {
  unsigned status = 0;
  std::string_view head = {};  // both valid until the next exchange
  std::string_view body = {};

  // The value of a header field, whose name is spelled as the server writes it.
  std::string_view field(std::string_view name) const {
    const auto at = head.find(std::string{"\r\n"}.append(name).append(": "));
    if (at == std::string_view::npos) return {};
    const auto begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

// One connection that is kept open.
class LoopbackClient {
 public:
  explicit LoopbackClient(unsigned short port)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), port_(port) {
    const int on = 1;
    const timeval limit{.tv_sec = 90, .tv_usec = 0};
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      give_up("cannot connect to 127.0.0.1:" + std::to_string(port));
    }
  }
  LoopbackClient(const LoopbackClient&) = delete;
  LoopbackClient& operator=(const LoopbackClient&) = delete;
  ~LoopbackClient() { ::close(fd_); }

  Answer get(const std::string& path) { return exchange("GET " + path + head_end()); }
  Answer post(const std::string& path, const std::string& body) {
    return exchange("POST " + path + " HTTP/1.1\r\nHost: " + host() +
                    "\r\nContent-Type: application/json\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body);
  }

 private:
  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string head_end() const { return " HTTP/1.1\r\nHost: " + host() + "\r\n\r\n"; }

  Answer exchange(const std::string& request) {
    if (::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      give_up("the server closed the connection");
    }
    std::size_t got = 0;
    std::size_t head = std::string_view::npos;
    while (head == std::string_view::npos) {
      got += receive(got, got + 4096);
      head = view(got).find("\r\n\r\n");
    }
    Answer answer{.head = view(head)};
    const std::string_view length = answer.field("Content-Length");
    if (length.empty()) give_up("an answer without Content-Length: " + std::string{answer.head});
    const std::size_t whole = head + 4 + std::strtoul(length.data(), nullptr, 10);
    while (got < whole) got += receive(got, whole);
    answer.status = static_cast<unsigned>(std::strtoul(text_.data() + 9, nullptr, 10));
    answer.head = view(head);
    answer.body = view(whole).substr(head + 4);
    return answer;
  }

  std::string_view view(std::size_t size) const { return std::string_view{text_}.substr(0, size); }

  std::size_t receive(std::size_t from, std::size_t to) {
    if (text_.size() < to) text_.resize(to);
    const ssize_t got = ::recv(fd_, text_.data() + from, to - from, 0);
    if (got <= 0)
      give_up("no whole answer: " + std::string{view(std::min<std::size_t>(from, 4096))});
    return static_cast<std::size_t>(got);
  }

  int fd_;
  unsigned short port_;
  std::string text_;  // never shrinks
};

}  // namespace bench
