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
  // Whether the gate is to know which local user holds the other end of a connection.
  bool asks_for_peer_user = false;
};

// The HTTP/1 server over one route table. Everything runs on the loop's single thread.
class Server {
 public:
  // Two routes that match the same requests are a bug in the table and end the process here. The
  // gate and the observer outlive the server.
  Server(asio::io_context& loop, ServerOptions options, std::vector<Route> routes, Gate& gate,
         Observer& observer);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // The server has been drained by now, or the loop has run dry.
  ~Server();

  // Binds and reads the certificate; the port it listens on. Fails listen_failed or config_invalid.
  Result<unsigned short> listen();
  // Serves until drain() begins.
  Task<> accept();
  // Stops accepting, lets requests in flight finish, ends streams and closes what is idle; after
  // the grace period it cancels what is left. Returns when no connection is left.
  Task<> drain(std::chrono::milliseconds grace);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace berth::http
