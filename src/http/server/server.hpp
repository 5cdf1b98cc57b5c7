#pragma once

#include "base/async/task.hpp"
#include "http/gate.hpp"
#include "http/limits.hpp"
#include "http/route.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::http {

struct Tls {
  std::string cert_file;  // PEM: the certificate and the chain above it
  std::string key_file;   // PEM
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address, or "localhost"
  unsigned short port = 0;         // 0 picks a free one
  Limits limits = {};
  std::optional<Tls> tls = {};
  // Whether the gate needs the local user at the other end of a connection.
  bool asks_for_peer_user = false;
};

// The HTTP/1 server over one route table. Everything runs on the loop's single thread.
class Server {
 public:
  // Two routes that match the same requests are a bug and end the process here. The gate and the
  // observer outlive the server.
  Server(asio::io_context& loop, ServerOptions options, std::vector<Route> routes, Gate& gate,
         Observer& observer);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // By now the server was drained, or the loop has no work left.
  ~Server();

  // Binds, reads the certificate, and returns the port. Fails with listen_failed or config_invalid.
  Result<unsigned short> listen();
  // Serves until drain() begins.
  Task<> accept();
  // Stops accepting, lets requests in flight finish, ends streams and closes idle connections.
  // After the grace period it cancels the rest. Returns when no connection is left.
  Task<> drain(std::chrono::milliseconds grace);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace berth::http
