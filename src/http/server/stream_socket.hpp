#pragma once

#include "base/async/async_mutex.hpp"
#include "http/server/serve.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <boost/beast/websocket/stream.hpp>

namespace berth::http {

namespace websocket = boost::beast::websocket;

// A WebSocket over a stream that a session owns.
template <class Stream>
class StreamSocket final : public Socket {
 public:
  StreamSocket(Stream& stream, const Request& request, BytesHolder holder, Traffic& traffic)
      : socket_(stream),
        request_(request),
        writing_(stream.get_executor()),
        holder_(std::move(holder)),
        traffic_(traffic) {
    const Limits& limits = traffic.limits();
    socket_.read_message_max(limits.socket_message_bytes_max);
    // Beast would split a message into frames of 4 KB, each with its own write.
    socket_.auto_fragment(false);
    socket_.set_option(websocket::stream_base::timeout{
        .handshake_timeout = limits.header_timeout,
        .idle_timeout = limits.idle_timeout,
        .keep_alive_pings = true,
    });
  }

  Task<std::optional<Message>> receive() override {
    BERTH_CO_DO(co_await accept());
    boost::beast::flat_buffer inbox;
    Holding held{traffic_.held_bytes(), holder_};
    do {
      const auto [error, size] =
          co_await socket_.async_read_some(inbox, piece_bytes, asio::as_tuple(asio::use_awaitable));
      if (error) {
        open_ = false;
        co_return std::optional<Message>{};
      }
      if (!hold(held, inbox.size())) {
        BERTH_CO_DO(co_await close(CloseCode::try_again_later, std::string{crowded}));
        co_return std::optional<Message>{};
      }
    } while (!socket_.is_message_done());
    const auto kind = socket_.got_binary() ? Message::Kind::binary : Message::Kind::text;
    co_return Message{kind, {static_cast<const char*>(inbox.cdata().data()), inbox.size()}};
  }

  Task<> send(Message message) override {
    BERTH_CO_DO(co_await accept());
    BERTH_CO_TRY(const AsyncMutex::Lock lock, co_await writing_.lock());
    if (!open_) co_return gone();
    Holding sending{traffic_.held_bytes(), holder_};
    if (!hold(sending, message.bytes.size())) {
      BERTH_CO_DO(co_await say_goodbye(CloseCode::try_again_later, std::string{crowded}));
      co_return gone();
    }
    socket_.binary(message.kind == Message::Kind::binary);
    const auto [error, size] = co_await socket_.async_write(asio::buffer(message.bytes),
                                                            asio::as_tuple(asio::use_awaitable));
    if (!error) co_return Result<>{};
    open_ = false;
    co_return gone();
  }

  Task<> close(CloseCode code, std::string reason) override {
    BERTH_CO_DO(co_await accept());
    BERTH_CO_TRY(const AsyncMutex::Lock lock, co_await writing_.lock());
    co_return co_await say_goodbye(code, std::move(reason));
  }

  bool accepted() const { return accepted_; }

 private:
  static constexpr std::size_t piece_bytes = 16UL * 1024;
  static constexpr std::string_view crowded = "the server holds too much for its clients";

  static std::unexpected<Error> gone() {
    return fail(Errc::cancelled, "the peer of the socket is gone");
  }

  // What is smaller is bounded by the number of sockets.
  bool hold(Holding& holding, std::size_t bytes) const {
    return bytes <= traffic_.limits().small_body_bytes || holding.grow_to(bytes);
  }

  // The caller holds the turn.
  Task<> say_goodbye(CloseCode code, std::string reason) {
    if (!std::exchange(open_, false)) co_return Result<>{};
    // A control frame has room for 123 bytes of reason.
    const websocket::close_reason last{
        static_cast<websocket::close_code>(code),
        boost::beast::string_view{reason.data(), std::min<std::size_t>(reason.size(), 123)}};
    co_await socket_.async_close(last, asio::as_tuple(asio::use_awaitable));
    co_return Result<>{};
  }

  // Answers the upgrade, once. A caller that comes while the answer is on its way waits for it:
  // Beast begins its state anew when it is out.
  Task<> accept() {
    if (ready_) co_return Result<>{};
    BERTH_CO_TRY(const AsyncMutex::Lock lock, co_await writing_.lock());
    if (ready_) co_return Result<>{};
    if (accepted_) co_return gone();
    const auto upgrade = upgrade_request();
    if (!websocket::is_upgrade(upgrade)) {
      co_return fail(Errc::bad_request, "this route is a WebSocket",
                     "ask for an upgrade to WebSocket, version 13");
    }
    socket_.set_option(websocket::stream_base::decorator([id = request_.request_id](auto& answer) {
      if constexpr (std::remove_cvref_t<decltype(answer)>::is_request::value) return;
      answer.set(boost::beast::http::field::server, "berth");  // Beast would add its version
      answer.set("X-Request-Id", id);
      answer.set("X-Content-Type-Options", "nosniff");
      answer.set("Referrer-Policy", "no-referrer");
    }));
    accepted_ = true;
    const auto [error] =
        co_await socket_.async_accept(upgrade, asio::as_tuple(asio::use_awaitable));
    ready_ = !error;
    if (ready_) co_return Result<>{};
    open_ = false;
    co_return gone();
  }

  // The parts of the request that Beast needs.
  boost::beast::http::request<boost::beast::http::empty_body> upgrade_request() const {
    namespace fields = boost::beast::http;
    fields::request<fields::empty_body> upgrade{fields::verb::get, request_.path, 11};
    for (const char* name :
         {"host", "connection", "upgrade", "sec-websocket-key", "sec-websocket-version"}) {
      if (const auto value = request_.headers.find(name)) {
        upgrade.set(name, boost::beast::string_view{value->data(), value->size()});
      }
    }
    return upgrade;
  }

  websocket::stream<Stream&> socket_;
  const Request& request_;
  AsyncMutex writing_;
  BytesHolder holder_;
  Traffic& traffic_;
  bool accepted_ = false;  // the answer has left, or failed on its way
  bool ready_ = false;     // for frames
  bool open_ = true;
};

// Closes the socket when the server drains or needs the place; the handler's receive then ends.
template <class Stream>
Task<> close_when_drained(StreamSocket<Stream>& socket, DrainSignal& drained) {
  while (!drained.has_rung()) co_await drained.async_wait(asio::as_tuple(asio::use_awaitable));
  if (socket.accepted()) {
    const bool is_evicted = drained.cause() == DrainSignal::Cause::eviction;
    co_await (is_evicted
                  ? socket.close(CloseCode::try_again_later, "the server needs the connection")
                  : socket.close(CloseCode::going_away, "the server is stopping"));
  }
  drained.expires_at(Moment::max());
  co_await drained.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return Result<>{};
}

template <class Stream>
Task<> run_socket_handler(Stream& stream, Upgrade upgrade, Traffic& traffic, DrainSignal& drained) {
  using namespace asio::experimental::awaitable_operators;
  StreamSocket<Stream> socket{stream, upgrade.request, BytesHolder::of(upgrade.call.who), traffic};
  Task<> talk = upgrade.handler(std::move(upgrade.call), upgrade.request, upgrade.values, socket);
  const auto ended =
      co_await (guarded(std::move(talk), upgrade.request) || close_when_drained(socket, drained));
  const auto* handled = std::get_if<0>(&ended);
  const bool failed = handled != nullptr && !*handled;
  if (failed && !socket.accepted()) co_return *handled;
  const auto code = failed ? CloseCode::internal_error : CloseCode::normal;
  const std::string reason{failed ? name_of(handled->error().code) : ""};
  const Result<> closed = co_await socket.close(code, reason);
  co_return socket.accepted() ? Result<>{} : closed;
}

}  // namespace berth::http
