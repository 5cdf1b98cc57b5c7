// bare_beast BODY: answers every request with BODY. The minimum that Beast on coroutines can do,
// and the baseline for our server: one thread, keep-alive, no routes, no limits.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

namespace {

asio::awaitable<void> serve(tcp::socket socket, const std::string& body) {
  boost::beast::flat_buffer buffer;
  for (;;) {
    http::request<http::string_body> request;
    co_await http::async_read(socket, buffer, request, asio::use_awaitable);
    http::response<http::string_body> response{http::status::ok, request.version(), body};
    response.set(http::field::content_type, "application/json");
    response.keep_alive(request.keep_alive());
    response.prepare_payload();
    co_await http::async_write(socket, response, asio::use_awaitable);
    if (!response.keep_alive()) co_return;
  }
}

// A client that disconnects ends its session with an exception, which is normal here.
void forget(const std::exception_ptr& /*thrown*/) {}

asio::awaitable<void> accept(tcp::acceptor acceptor, const std::string& body) {
  for (;;) {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    socket.set_option(tcp::no_delay{true});
    asio::co_spawn(acceptor.get_executor(), serve(std::move(socket), body), forget);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string body = argc > 1 ? argv[1] : R"({"status":"ok"})";
  asio::io_context loop{1};
  tcp::acceptor acceptor{loop, {asio::ip::address_v4::loopback(), 0}};
  std::printf("listening on http://127.0.0.1:%u\n", unsigned{acceptor.local_endpoint().port()});
  std::fflush(stdout);
  asio::co_spawn(loop, accept(std::move(acceptor), body), [](const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
  });
  loop.run();
}
