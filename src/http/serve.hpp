#pragma once

#include "http/dispatcher.hpp"
#include "http/tcp.hpp"
#include "http/traffic.hpp"
#include "http/writer.hpp"

// The doors between the server and the templates over its two kinds of stream, each instantiated
// in a source file of its own.
namespace berth::http {

// Serves one client until it is gone. Dispatcher and traffic outlive it.
Task<> serve_plain(TcpSocket socket, Dispatcher& dispatcher, Traffic& traffic);
Task<> serve_tls(TcpSocket socket, asio::ssl::context& tls, Dispatcher& dispatcher,
                 Traffic& traffic);

// An upgrade to WebSocket that the dispatcher has admitted.
struct Upgrade {
  const SocketHandler& handler;
  const Request& request;
  const PathValues& values;
  core::Call call;
};

// Where streams hear that the server is draining: a timer that is cancelled then.
using DrainSignal = asio::steady_timer;

// Runs the handler over the stream. An error before the upgrade was answered is returned, for a
// plain answer; after it, the socket is closed with a code that tells.
Task<> serve_socket(TcpSocket& stream, Upgrade upgrade, Traffic& traffic, DrainSignal& drained);
Task<> serve_socket(TlsStream& stream, Upgrade upgrade, Traffic& traffic, DrainSignal& drained);

}  // namespace berth::http
