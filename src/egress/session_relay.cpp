#include "egress/session.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>

// A plain request and its response. Both are read to the end of their framing and framed anew, so
// that no byte of one message can be taken for the start of another.
namespace berth::egress {
namespace {

using boost::system::error_code;

constexpr std::size_t read_bytes = 64UL * 1024;
constexpr std::size_t interim_answers_max = 8;

// The framing of the response to the client: one that keeps its connection open, if possible.
Framing framing_for(const Framing& in, Version client) {
  using Kind = Framing::Kind;
  if (in.kind != Kind::until_close && in.kind != Kind::chunked) return in;
  return {.kind = client == Version::http_1_1 ? Kind::chunked : Kind::until_close};
}

}  // namespace

asio::awaitable<Session::Next> Session::relay() {
  using namespace asio::experimental::awaitable_operators;
  phase_ = Phase::answer;
  touch();
  const bool own = request_.kind == ProxyRequest::Kind::callback;
  const std::string host = own ? shared_.callback->host : request_.target.authority();
  const std::string head = upstream_head(request_, host);
  if (Result<> written = co_await write_all(upstream_, head, entry_.bytes_up); !written) {
    co_return co_await refuse(std::move(written).error());
  }
  if (request_.body == Framing{}) {
    body_sent_ = true;
    co_await receive_answer();
  } else {
    co_await (send_body() && receive_answer());
  }
  if (!received_ && !answered_) {
    // A malformed request is the reason why the upstream has no response.
    co_return co_await refuse(sent_ ? std::move(received_).error() : std::move(sent_).error());
  }
  if (!received_) {
    if (entry_.reason.empty()) entry_.reason = received_.error().message;
    if (entry_.decision != Outcome::cut) entry_.decision = Outcome::failed;
    co_return Next::close;
  }
  if (keeps_alive_ && body_sent_) co_return Next::request;
  co_return Next::linger;
}

asio::awaitable<void> Session::send_body() {
  sent_ = co_await send_content();
  if (sent_) co_return;
  error_code ignored;
  upstream_.close(ignored);
}

Task<> Session::send_content() {
  BodyReader reader{request_.body};
  std::uint64_t size = 0;
  while (!reader.done()) {
    BERTH_CO_TRY(const BodyPiece piece, reader.take(inbox_.view()));
    if (piece.used == 0) {
      const auto [error, arrived] =
          co_await client_.async_read_some(inbox_.room_for(read_bytes), tuple_awaitable);
      // A client that has the whole response need not send the rest of the request.
      if (error && answered_) co_return Result<>{};
      if (error) co_return fail(Errc::bad_request, "the request ends in the middle of its body");
      inbox_.arrived(arrived);
      touch();
      continue;
    }
    size += piece.content.size();
    if (size > shared_.limits.request_body_bytes_max) {
      co_return fail(Errc::body_too_large,
                     "the body is longer than " +
                         std::to_string(shared_.limits.request_body_bytes_max) + " bytes",
                     "send large bodies through CONNECT");
    }
    const Result<> written =
        co_await write_content(upstream_, piece.content, request_.body, entry_.bytes_up);
    // The upstream may have responded before it closed, so its response decides what the client
    // sees.
    if (!written) co_return Result<>{};
    inbox_.used(piece.used);
  }
  if (request_.body.kind == Framing::Kind::chunked) {
    co_await write_all(upstream_, "0\r\n\r\n", entry_.bytes_up);
  }
  body_sent_ = true;
  co_return Result<>{};
}

asio::awaitable<void> Session::receive_answer() {
  received_ = co_await forward_answer();
  if (body_sent_) co_return;
  error_code ignored;
  client_.cancel(ignored);  // the rest of the request is not needed
}

Task<> Session::read_answer_head() {
  HeadEnd end;
  while (true) {
    Result<std::optional<std::size_t>> size = end.find(answer_inbox_.view());
    const bool too_long =
        size && size->value_or(answer_inbox_.size()) > shared_.limits.header_bytes_max;
    if (!size || too_long) {
      co_return fail(Errc::server_unreachable,
                     request_.target.str() + " sends a response that is not HTTP");
    }
    if (*size) {
      Result<ResponseHead> head = parse_response_head(answer_inbox_.view().substr(0, **size));
      answer_inbox_.used(**size);
      if (!head) {
        co_return fail(Errc::server_unreachable,
                       request_.target.str() + ": " + head.error().message);
      }
      answer_ = *std::move(head);
      co_return Result<>{};
    }
    const auto [error, arrived] =
        co_await upstream_.async_read_some(answer_inbox_.room_for(read_bytes), tuple_awaitable);
    if (timed_out_) {
      co_return fail(Errc::timed_out, request_.target.str() + " does not answer in time");
    }
    if (error) {
      co_return fail(Errc::server_unreachable,
                     request_.target.str() + " closes without an answer: " + error.message());
    }
    answer_inbox_.arrived(arrived);
    touch();
  }
}

Task<> Session::forward_answer() {
  for (std::size_t interim = 0;; ++interim) {
    BERTH_CO_DO(co_await read_answer_head());
    if (answer_.status >= 200) break;
    // Nothing can have been upgraded, because the Upgrade request was not forwarded.
    if (answer_.status == 101 || interim >= interim_answers_max) {
      co_return fail(Errc::server_unreachable, request_.target.str() + " sends a wrong answer");
    }
    if (request_.version == Version::http_1_0) continue;
    const std::string head = client_head(answer_, {}, Persistence::keep_alive);
    BERTH_CO_DO(co_await write_all(client_, head, entry_.bytes_down));
  }
  const Result<Framing> in = framing_of(answer_, request_.method);
  if (!in) {
    co_return fail(Errc::server_unreachable, request_.target.str() + ": " + in.error().message);
  }
  const Framing out = framing_for(*in, request_.version);
  keeps_alive_ = request_.keeps_alive && body_sent_ && out.kind != Framing::Kind::until_close;
  const std::string head =
      client_head(answer_, out, keeps_alive_ ? Persistence::keep_alive : Persistence::close);
  answered_ = true;
  phase_ = Phase::streaming;
  entry_.status = answer_.status;
  BERTH_CO_DO(co_await write_all(client_, head, entry_.bytes_down));
  co_return co_await forward_content(*in, out);
}

Task<> Session::forward_content(Framing in, Framing out) {
  BodyReader reader{in};
  while (!reader.done()) {
    BERTH_CO_TRY(const BodyPiece piece, reader.take(answer_inbox_.view()));
    if (piece.used == 0) {
      const auto [error, arrived] =
          co_await upstream_.async_read_some(answer_inbox_.room_for(read_bytes), tuple_awaitable);
      if (error == asio::error::eof) {
        BERTH_CO_DO(reader.end());
        break;
      }
      if (error) co_return fail(Errc::server_unreachable, "the upstream is gone");
      answer_inbox_.arrived(arrived);
      touch();
      continue;
    }
    BERTH_CO_DO(co_await write_content(client_, piece.content, out, entry_.bytes_down));
    answer_inbox_.used(piece.used);
  }
  if (out.kind == Framing::Kind::chunked) {
    BERTH_CO_DO(co_await write_all(client_, "0\r\n\r\n", entry_.bytes_down));
  }
  co_return Result<>{};
}

Task<> Session::write_content(Socket& to, std::string_view content, Framing framing,
                              std::uint64_t& count) {
  if (content.empty()) co_return Result<>{};
  const bool chunked = framing.kind == Framing::Kind::chunked;
  const std::string head = chunked ? chunk_head(content.size()) : "";
  const std::string_view tail = chunked ? "\r\n" : "";
  const std::array buffers{asio::buffer(head), asio::buffer(content), asio::buffer(tail)};
  const auto [error, sent] = co_await asio::async_write(to, buffers, tuple_awaitable);
  count += sent;
  if (error) co_return fail(Errc::server_unreachable, "the connection broke: " + error.message());
  touch();
  co_await pace(sent);
  co_return Result<>{};
}

}  // namespace berth::egress
