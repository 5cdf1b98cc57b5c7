#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <openssl/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace berth::cli {

// A server's address: parsed from "https://berth.example.org:3100/prefix".
struct Endpoint {
  bool tls = false;
  std::string host;
  std::uint16_t port = 0;
  std::string prefix = {};  // path before /api, without a trailing slash

  std::string authority() const;  // as in the Host header
  std::string url() const;
};
Result<Endpoint> parse_endpoint(std::string_view url);

using Deadline = std::chrono::steady_clock::time_point;

// A TCP stream, with TLS if the endpoint requires it. Every step has a deadline; a failure is
// server_unreachable or timed_out and names the server.
class Connection {
 public:
  static Result<Connection> open(const Endpoint& endpoint, Deadline deadline);
  Result<> write(std::string_view bytes, Deadline deadline);
  // Zero bytes: the server has closed the stream.
  Result<std::size_t> read(std::span<char> into, Deadline deadline);

 private:
  struct TlsFree {
    void operator()(SSL* tls) const noexcept;
  };
  Connection(Fd socket, std::string name) : socket_(std::move(socket)), name_(std::move(name)) {}
  Result<> start_tls(const std::string& host, Deadline deadline);
  Result<> wait(short events, Deadline deadline) const;
  Result<> wait_tls(int result, Deadline deadline) const;

  Fd socket_;
  std::string name_;
  std::unique_ptr<SSL, TlsFree> tls_;
};

}  // namespace berth::cli
