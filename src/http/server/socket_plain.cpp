#include "http/server/stream_socket.hpp"

namespace berth::http {

Task<> serve_socket(TcpSocket& stream, Upgrade upgrade, Traffic& traffic, DrainSignal& drained) {
  return run_socket_handler(stream, std::move(upgrade), traffic, drained);
}

}  // namespace berth::http
