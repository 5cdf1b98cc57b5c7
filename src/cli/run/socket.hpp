#pragma once

#include "base/async/task.hpp"
#include "base/secret.hpp"
#include "cli/net/connection.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace berth::cli {

// Waits for the result and the error of an operation together.
inline constexpr auto as_pair = asio::as_tuple(asio::use_awaitable);

struct SocketMessage {
  enum class Kind { text, binary };

  Kind kind = Kind::text;
  std::string bytes = {};
};

// A WebSocket to a server. One receive and one send may be in progress at a time. A connection that
// breaks or is closed is server_unreachable; a silent one is timed_out.
class Socket {
 public:
  virtual ~Socket() = default;
  virtual Task<SocketMessage> receive() = 0;
  virtual Task<> send(std::string text) = 0;
  virtual Task<> send_binary(std::string bytes) = 0;
  // Closes in order, waiting only briefly.
  virtual Task<> close() = 0;
  // Ends everything in progress.
  virtual void drop() = 0;
};

// Connects, over TLS if the endpoint requires it, and requests the upgrade. A refusal is returned
// as the Error that the server wrote; a server that accepts the connection and then remains silent
// this long is timed_out. The references are used until the result.
inline constexpr std::chrono::seconds usual_answer_limit{10};
Task<std::unique_ptr<Socket>> open_socket(const Endpoint& server,
                                          const std::optional<Secret>& token, std::string path,
                                          std::chrono::seconds answer_limit = usual_answer_limit);

}  // namespace berth::cli
