#include "http/session.hpp"

namespace berth::http {

Task<> serve_plain(TcpSocket socket, Dispatcher& dispatcher, Traffic& traffic) {
  return run_session(std::move(socket), dispatcher, traffic);
}

}  // namespace berth::http
