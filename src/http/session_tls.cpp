#include "http/session.hpp"

namespace berth::http {

Task<> serve_tls(TcpSocket socket, asio::ssl::context& tls, Dispatcher& dispatcher,
                 Traffic& traffic) {
  return run_session(TlsStream{std::move(socket), tls}, dispatcher, traffic);
}

}  // namespace berth::http
