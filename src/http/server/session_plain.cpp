#include "http/server/session.hpp"

namespace berth::http {

Task<> serve_plain(TcpSocket socket, Arrival arrival, Dispatcher& dispatcher, Traffic& traffic) {
  return run_session(std::move(socket), arrival, dispatcher, traffic);
}

}  // namespace berth::http
