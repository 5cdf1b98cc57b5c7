#include "http/server/stream_socket.hpp"

#include <boost/beast/websocket/ssl.hpp>

namespace berth::http {

Task<> serve_socket(TlsStream& stream, Upgrade upgrade, Traffic& traffic, DrainSignal& drained) {
  return run_socket_handler(stream, std::move(upgrade), traffic, drained);
}

}  // namespace berth::http
