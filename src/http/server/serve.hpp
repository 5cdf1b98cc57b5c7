#pragma once

#include "http/server/dispatcher.hpp"
#include "http/server/message/writer.hpp"
#include "http/server/tcp.hpp"
#include "http/server/traffic.hpp"

#include <boost/beast/core/flat_buffer.hpp>

// The interface between the server and the templates over its two stream types, each instantiated
// in its own source file.
namespace berth::http {

// What is known about a client before its first byte.
struct Arrival {
  Place place = Place::usual;
  std::optional<unsigned> user = {};  // the user at the other end, if it was looked up
};

// Serves one client until it disconnects. Dispatcher and traffic outlive it.
Task<> serve_plain(TcpSocket socket, Arrival arrival, Dispatcher& dispatcher, Traffic& traffic);
Task<> serve_tls(TcpSocket socket, asio::ssl::context& tls, Arrival arrival, Dispatcher& dispatcher,
                 Traffic& traffic);

// An upgrade to WebSocket that the dispatcher has admitted.
struct Upgrade {
  const SocketHandler& handler;
  const Request& request;
  const PathValues& values;
  core::Call call;
};

// Signals a stream that it has to end: a timer that is cancelled then.
class DrainSignal final : public asio::steady_timer {
 public:
  enum class Cause { none, drain, eviction };

  explicit DrainSignal(const Executor& executor) : asio::steady_timer(executor) {}
  void ring(Cause cause) {
    cause_ = cause;
    cancel();
  }
  Cause cause() const { return cause_; }
  bool has_rung() const { return cause_ != Cause::none; }

 private:
  Cause cause_ = Cause::none;
};

// Runs the handler over the stream. An error before the upgrade was answered is returned, for a
// plain response. After it, the socket is closed with a matching code.
Task<> serve_socket(TcpSocket& stream, Upgrade upgrade, Traffic& traffic, DrainSignal& drained);
Task<> serve_socket(TlsStream& stream, Upgrade upgrade, Traffic& traffic, DrainSignal& drained);

// A request whose head was read and that is relayed over its own connection. The references belong
// to the session.
struct Relaying {
  Fd server;
  Request& request;
  RequestReader& reader;
  boost::beast::flat_buffer& inbox;  // what the client has sent after the head
  std::size_t prefix_bytes;          // length of the path prefix that the server inside does not
                                     // see
  Delivery delivery;
};

// The status that the client got. An error before anything was sent to the client is returned, for
// a plain response. The client connection serves no further requests.
Task<unsigned> serve_relay(TcpSocket& stream, Relaying what, Traffic& traffic,
                           DrainSignal& drained);
Task<unsigned> serve_relay(TlsStream& stream, Relaying what, Traffic& traffic,
                           DrainSignal& drained);

}  // namespace berth::http
