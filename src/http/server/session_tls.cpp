#include "http/server/session.hpp"

namespace berth::http {

Task<> serve_tls(TcpSocket socket, asio::ssl::context& tls, Arrival arrival, Dispatcher& dispatcher,
                 Traffic& traffic) {
  return run_session(TlsStream{std::move(socket), tls}, arrival, dispatcher, traffic);
}

}  // namespace berth::http
