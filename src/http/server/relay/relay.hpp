#pragma once

#include "http/server/relay/relay_head.hpp"
#include "http/server/serve.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace berth::http {

// One request to a server inside a sandbox, over a connection that serves only this request, so
// that no inside data can pass for the response to another request. Bytes flow in both directions
// at once, in pieces; neither body is ever in memory as a whole.
template <class Stream>
class Relay {
 public:
  Relay(Stream& stream, Relaying& what, Traffic& traffic, DrainSignal& drained)
      : stream_(stream),
        what_(what),
        traffic_(traffic),
        limits_(traffic.limits()),
        drained_(drained),
        server_(stream.get_executor()),
        overdue_(stream.get_executor()),
        switched_(stream.get_executor(), Moment::max()),
        inbox_(limits_.relay_header_bytes_max + piece_bytes) {}

  // The status that the client got. On error the client got nothing yet, and the error is meant for
  // it.
  Task<unsigned> run() {
    using namespace asio::experimental::awaitable_operators;
    BERTH_CO_DO(co_await begin());
    const auto ended =
        co_await (answer() || take_from_client() || watch_time() || end_when_drained());
    const Result<> first = std::visit([](const Result<>& one) { return one; }, ended);
    if (status_ == 0 && !first) co_return std::unexpected(first.error());
    if (status_ == 0) co_return fail(Errc::cancelled, "the client is gone");
    co_return status_;
  }

 private:
  using Parser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;
  static constexpr std::size_t piece_bytes = 32UL * 1024;
  static constexpr int interim_answers_max = 16;
  static constexpr std::chrono::milliseconds half_closed_timeout{10'000};
  static constexpr auto as_pair = asio::as_tuple(asio::use_awaitable);

  static std::unexpected<Error> gone() { return fail(Errc::cancelled, "the client is gone"); }
  std::unexpected<Error> bad_answer(const std::string& why) const {
    return fail(Errc::port_unreachable, "port " + std::to_string(port_) + " of the sandbox: " + why,
                "look at what listens there; it has to speak HTTP");
  }

  Task<> begin() {
    boost::system::error_code error;
    server_.assign(protocol_of(what_.server.get()), what_.server.get(), error);
    if (error) co_return bad_answer(error.message());
    std::ignore = what_.server.release();  // the socket closes it
    port_ = server_.remote_endpoint(error).port();
    // Before anything else is written to the client.
    if (what_.reader.expects_continue() && what_.inbox.size() == 0) {
      const auto [failed, size] =
          co_await asio::async_write(stream_, asio::buffer(continue_head), as_pair);
      if (failed) co_return gone();
    }
    expect_within(limits_.relay_idle_timeout);
    co_return Result<>{};
  }

  static asio::ip::tcp protocol_of(int socket) {
    int family = 0;
    socklen_t size = sizeof family;
    ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size);
    return family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
  }

  void expect_within(std::chrono::milliseconds time) {
    if (is_half_closed_) time = std::min(time, half_closed_timeout);
    deadline_ = std::chrono::steady_clock::now() + time;
    if (overdue_.expiry() > deadline_) overdue_.cancel();
  }
  void made_progress() {
    // A slowly arriving response head is not progress: the head has its own deadline.
    if (status_ == 101) return expect_within(limits_.tunnel_idle_timeout);
    if (status_ != 0 || !is_sent_) expect_within(limits_.relay_idle_timeout);
  }

  Task<> watch_time() {
    while (std::chrono::steady_clock::now() < deadline_) {
      overdue_.expires_at(deadline_);
      co_await overdue_.async_wait(as_pair);
    }
    co_return bad_answer("has not answered in time");
  }

  // Requests may finish within the drain's grace period; a tunnel would never finish. A relay that
  // must make room ends at once.
  Task<> end_when_drained() {
    while (!must_end()) co_await drained_.async_wait(as_pair);
    co_return Result<>{};
  }

  bool must_end() const {
    if (drained_.cause() == DrainSignal::Cause::eviction) return true;
    return status_ == 101 && drained_.has_rung();
  }

  // The head, the body, and then the tunnel's bytes. Ends when the client has disconnected.
  Task<> take_from_client() {
    const Forwarding forwarding{.prefix_bytes = what_.prefix_bytes, .port = port_};
    const std::string head = forwarded_head(what_.request, what_.reader.head(), forwarding);
    bool takes = co_await write_to_server(head);
    while (takes && what_.reader.stage() != RequestReader::Stage::done) {
      BERTH_CO_TRY(takes, co_await pass_body_on());
    }
    is_sent_ = true;
    if (status_ == 0) expect_within(limits_.relay_answer_timeout);
    if (asks_for_websocket(what_.request, what_.reader.head())) {
      while (status_ != 101) co_await switched_.async_wait(as_pair);
      if (what_.inbox.size() > 0) takes = co_await write_to_server(buffered());
      what_.inbox.clear();
    }
    std::vector<char> piece(status_ == 101 ? piece_bytes : 512);
    while (true) {
      const auto [error, size] = co_await stream_.async_read_some(asio::buffer(piece), as_pair);
      if (error == asio::error::eof && status_ != 101) co_await wait_for_the_answer();
      if (error) co_return gone();
      if (status_ != 101) continue;  // further requests on this connection are not served
      if (!co_await write_to_server({piece.data(), size})) co_return gone();
      made_progress();
    }
  }

  // A client that sends no more may still read. One that has closed its socket looks the same until
  // something is written to it, so the server inside has less time from here on. Ends when the
  // connection is reset, or when this server cuts the client off, which is signalled like a drain;
  // else with the other tasks.
  asio::awaitable<void> wait_for_the_answer() {
    using namespace asio::experimental::awaitable_operators;
    is_half_closed_ = true;
    expect_within(status_ == 0 ? limits_.relay_answer_timeout : limits_.relay_idle_timeout);
    bool is_reset = false;
    while (!is_reset && stream_.lowest_layer().is_open()) {
      const auto first =
          co_await (drained_.async_wait(as_pair) ||
                    stream_.lowest_layer().async_wait(asio::socket_base::wait_error, as_pair));
      is_reset = first.index() == 1;
    }
  }

  // One piece of the client's body; false when the server inside no longer reads.
  Task<bool> pass_body_on() {
    if (what_.inbox.size() > 0) {
      BERTH_CO_TRY(const std::size_t used, what_.reader.feed(buffered()));
      what_.inbox.consume(used);
      const std::string piece = std::exchange(what_.request.body, {});
      const bool is_last = what_.reader.stage() == RequestReader::Stage::done;
      const bool chunks = what_.request.headers.find("transfer-encoding").has_value();
      std::string framed;
      if (chunks && !piece.empty()) framed = chunk_head(piece.size()) + piece + "\r\n";
      if (chunks && is_last) framed += "0\r\n\r\n";
      made_progress();
      if (!co_await write_to_server(chunks ? framed : piece)) co_return false;
      if (used > 0) co_return true;
    }
    const auto [error, size] =
        co_await stream_.async_read_some(what_.inbox.prepare(piece_bytes), as_pair);
    if (error) co_return gone();
    what_.inbox.commit(size);
    co_return true;
  }

  std::string_view buffered() const {
    const auto bytes = what_.inbox.cdata();
    return {static_cast<const char*>(bytes.data()), bytes.size()};
  }

  static std::string chunk_head(std::size_t size) {
    std::array<char, 20> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16).ptr;
    return std::string{digits.data(), end} + "\r\n";
  }

  // A server that no longer reads may still have responded.
  asio::awaitable<bool> write_to_server(std::string_view bytes) {
    const auto [error, size] =
        co_await asio::async_write(server_, asio::buffer(bytes.data(), bytes.size()), as_pair);
    co_return !error;
  }

  Task<> answer() {
    std::optional<Parser> parser;
    BERTH_CO_DO(co_await read_head(parser));
    const unsigned status = parser->get().result_int();
    if (status == 101) co_return co_await tunnel(*parser);
    const Framing framing = framing_of(*parser);
    BERTH_CO_DO(co_await begin_answer(*parser, framing));
    std::vector<char> piece(piece_bytes);
    while (!parser->is_done()) {
      parser->get().body() = {.data = piece.data(), .size = piece.size(), .more = true};
      auto [error, size] =
          co_await boost::beast::http::async_read_some(server_, inbox_, *parser, as_pair);
      if (error == boost::beast::http::error::need_buffer) error = {};
      if (error) co_return bad_answer("ends in the middle of its answer: " + error.message());
      BERTH_CO_DO(co_await pass_piece_on({piece.data(), piece.size() - parser->get().body().size},
                                         framing));
    }
    if (framing != Framing::chunks) co_return Result<>{};
    co_return co_await write_to_client("0\r\n\r\n");
  }

  // Skips what comes before the response itself: 100 Continue and similar.
  Task<> read_head(std::optional<Parser>& parser) {
    for (int i = 0; i < interim_answers_max; ++i) {
      parser.emplace();
      parser->header_limit(static_cast<std::uint32_t>(limits_.relay_header_bytes_max));
      parser->body_limit(boost::none);
      parser->eager(true);
      parser->skip(what_.reader.head().method == Head::Method::head);
      const auto [error, size] =
          co_await boost::beast::http::async_read_header(server_, inbox_, *parser, as_pair);
      if (error) co_return bad_answer("gives no answer in HTTP: " + error.message());
      const auto& head = parser->get();
      if (head.result_int() == 101) co_return check_switch(head);
      if (head.result_int() >= 200) co_return check_coding(head);
    }
    co_return bad_answer("gives no end to what comes before its answer");
  }

  Result<> check_switch(const AnswerHeader& head) const {
    namespace fields = boost::beast::http;
    const bool asked = asks_for_websocket(what_.request, what_.reader.head());
    if (asked && fields::token_list{head[fields::field::upgrade]}.exists("websocket")) return {};
    return bad_answer("switches to a protocol that it was not asked for");
  }

  Result<> check_coding(const AnswerHeader& head) const {
    if (!is_coded_for_the_way(head)) return {};
    return bad_answer("answers with a Transfer-Encoding other than 'chunked'");
  }

  Framing framing_of(const Parser& parser) const {
    const unsigned status = parser.get().result_int();
    if (status == 204 || status == 304) return Framing::none;
    if (parser.content_length() && !parser.chunked()) return Framing::length;
    if (what_.reader.head().method == Head::Method::head) return Framing::none;
    const bool is_modern = what_.reader.head().version == Head::Version::http_1_1;
    return is_modern ? Framing::chunks : Framing::until_close;
  }

  Task<> begin_answer(const Parser& parser, Framing framing) {
    const std::string_view path = what_.request.path;
    // The date changes every second, and the request may have taken longer.
    what_.delivery.date = traffic_.date();
    const AnswerFacts facts{.delivery = what_.delivery,
                            .framing = framing,
                            .prefix = path.substr(0, what_.prefix_bytes),
                            .path = path.substr(what_.prefix_bytes),
                            .port = port_,
                            .length = parser.content_length().value_or(0)};
    const std::string head = answer_head(parser.get(), facts);
    status_ = parser.get().result_int();
    made_progress();
    co_return co_await write_to_client(head);
  }

  Task<> pass_piece_on(std::string_view piece, Framing framing) {
    if (piece.empty()) co_return Result<>{};
    made_progress();
    if (framing != Framing::chunks) co_return co_await write_to_client(piece);
    std::string chunk = chunk_head(piece.size());
    chunk.append(piece).append("\r\n");
    co_return co_await write_to_client(chunk);
  }

  Task<> write_to_client(std::string_view bytes) {
    const auto [error, size] =
        co_await asio::async_write(stream_, asio::buffer(bytes.data(), bytes.size()), as_pair);
    if (error) co_return gone();
    made_progress();
    co_return Result<>{};
  }

  Task<> tunnel(const Parser& parser) {
    BERTH_CO_DO(co_await begin_answer(parser, Framing::tunnel));
    switched_.cancel();
    const auto early = inbox_.cdata();
    BERTH_CO_DO(co_await write_to_client({static_cast<const char*>(early.data()), early.size()}));
    std::vector<char> piece(piece_bytes);
    while (true) {
      const auto [error, size] = co_await server_.async_read_some(asio::buffer(piece), as_pair);
      if (error) co_return Result<>{};
      BERTH_CO_DO(co_await write_to_client({piece.data(), size}));
    }
  }

  Stream& stream_;
  Relaying& what_;
  Traffic& traffic_;
  const Limits& limits_;
  DrainSignal& drained_;
  TcpSocket server_;
  asio::steady_timer overdue_;
  asio::steady_timer switched_;      // never expires; cancelled when the tunnel is open
  boost::beast::flat_buffer inbox_;  // from the server
  Moment deadline_ = Moment::max();
  unsigned short port_ = 0;
  unsigned status_ = 0;          // sent to the client
  bool is_sent_ = false;         // the whole request
  bool is_half_closed_ = false;  // by the client
};

template <class Stream>
Task<unsigned> run_relay(Stream& stream, Relaying what, Traffic& traffic, DrainSignal& drained) {
  Relay<Stream> relay{stream, what, traffic, drained};
  co_return co_await relay.run();
}

}  // namespace berth::http
