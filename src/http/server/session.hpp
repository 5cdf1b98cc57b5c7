#pragma once

#include "base/log.hpp"
#include "base/names.hpp"
#include "http/server/event_writer.hpp"
#include "http/server/relay/relay_head.hpp"
#include "http/server/serve.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include <array>
#include <concepts>

#include <poll.h>

namespace berth::http {

// One client from its first byte to its last, over a plain or a TLS stream. Only this coroutine
// uses the stream; the sweep, an eviction or a drain wakes it by cancelling or closing the socket.
template <class Stream>
class Session final : public Connection {
 public:
  Session(Stream stream, Arrival arrival, Dispatcher& dispatcher, Traffic& traffic)
      : stream_(std::move(stream)),
        dispatcher_(dispatcher),
        traffic_(traffic),
        limits_(traffic.limits()),
        drained_(stream_.get_executor()) {
    boost::system::error_code gone;
    const auto peer = stream_.lowest_layer().remote_endpoint(gone);
    if (!gone) request_.remote_address = peer.address().to_string();
    request_.peer_user = arrival.user;
    traffic_.enter(*this, arrival.place);
  }
  ~Session() override {
    let_go();
    traffic_.leave(*this);
  }

  Task<> run() {
    set_deadline_in(limits_.header_timeout);
    if constexpr (std::same_as<Stream, TlsStream>) {
      const auto [error] = co_await stream_.async_handshake(asio::ssl::stream_base::server,
                                                            asio::as_tuple(asio::use_awaitable));
      if (error) co_return Result<>{};  // a port scanner or a client that does not trust us
      set_deadline_in(limits_.header_timeout);
    }
    Next next = co_await exchange();
    while (next == Next::request) {
      set_deadline_in(inbox_.size() > 0 ? limits_.header_timeout : limits_.idle_timeout);
      next = co_await exchange();
    }
    if (next == Next::linger) co_await linger();
    if constexpr (std::same_as<Stream, TlsStream>) {
      set_deadline_in(limits_.linger_timeout);
      co_await stream_.async_shutdown(asio::as_tuple(asio::use_awaitable));
    }
    co_return Result<>{};
  }

  void expire() override {
    clear_deadline();
    timed_out_ = phase_ == Phase::reading;
    boost::system::error_code ignored;
    if (timed_out_) {
      stream_.lowest_layer().cancel(ignored);  // the read ends, and the client gets a 408
    } else {
      abort();
    }
  }

  void abort() override {
    boost::system::error_code ignored;
    stream_.lowest_layer().close(ignored);
    drained_.cancel();
  }

  void drain() override {
    if (phase_ == Phase::idle) abort();
    drained_.ring(DrainSignal::Cause::drain);
  }

  void give_way() override { drained_.ring(DrainSignal::Cause::eviction); }

 private:
  using Stage = RequestReader::Stage;
  // Idle: no byte of the next request has arrived.
  enum class Phase { idle, reading, working, writing };
  enum class Next { request, close, linger };

  asio::awaitable<Next> exchange() {
    begin();
    if (Result<> got = co_await read_to(Stage::body); !got) {
      co_return co_await refuse(std::move(got).error(), nullptr);
    }
    began_ = std::chrono::steady_clock::now();
    name_request();
    Result<Match> match = dispatcher_.route(reader_->head(), request_);
    if (!match) co_return co_await refuse(std::move(match).error(), nullptr);
    const Route& route = *match->route;
    traffic_.settle(*this);
    if (std::holds_alternative<RelayHandler>(route.handler)) co_return co_await relay(*match);
    std::optional<core::Caller> known;
    if (reader_->stage() == Stage::body) {
      Result<std::optional<core::Caller>> sender = co_await authenticate_large(route);
      if (!sender) co_return co_await refuse(std::move(sender).error(), &route);
      known = *std::move(sender);
      if (Result<> got = co_await read_body(route); !got) {
        co_return co_await refuse(std::move(got).error(), &route);
      }
    }
    traffic_.works(*this);
    phase_ = Phase::working;
    clear_deadline();
    co_return co_await respond(*match, std::move(known));
  }

  void begin() {
    traffic_.waits(*this);
    let_go();
    constexpr std::size_t kept_bytes_max = 4096;
    if (request_.body.capacity() > kept_bytes_max) request_.body = {};
    if (out_.capacity() > kept_bytes_max) out_ = {};
    if (inbox_.size() == 0 && inbox_.capacity() > kept_bytes_max) inbox_.shrink_to_fit();
    reader_.emplace(request_, limits_);
    phase_ = inbox_.size() > 0 ? Phase::reading : Phase::idle;
    began_ = {};
  }

  void name_request() {
    const auto given = request_.headers.find("x-request-id");
    request_.request_id =
        given && is_request_id(*given) ? std::string{*given} : traffic_.next_request_id();
  }

  // A large body is stored only for a caller that may send it. The caller of a small one is not
  // known yet.
  Task<std::optional<core::Caller>> authenticate_large(const Route& route) {
    const auto length = reader_->body_length();
    const bool is_small = length && *length <= limits_.small_body_bytes;
    if (is_small) co_return std::nullopt;
    const bool is_beyond_usual = dispatcher_.body_bytes_max(route) > limits_.body_bytes_max;
    if (is_beyond_usual && place() == Place::reserve) {
      co_return std::unexpected(only_for_administrators());
    }
    BERTH_CO_TRY(core::Caller caller,
                 co_await guarded(dispatcher_.authenticate(request_, route), request_));
    holder_ = BytesHolder::of(caller);
    co_return caller;
  }

  Task<> read_body(const Route& route) {
    BERTH_CO_DO(reader_->limit_body(dispatcher_.body_bytes_max(route)));
    set_deadline_in(limits_.body_timeout);
    if (reader_->expects_continue() && inbox_.size() == 0) {
      const auto [error, size] = co_await asio::async_write(stream_, asio::buffer(continue_head),
                                                            asio::as_tuple(asio::use_awaitable));
      if (error) co_return fail(Errc::cancelled, "the client is gone");
    }
    co_return co_await read_to(Stage::done);
  }

  // Fails with `cancelled` when the client has disconnected.
  Task<> read_to(Stage wanted) {
    const std::size_t read_bytes = wanted == Stage::done ? 16UL * 1024 : 2UL * 1024;
    while (true) {
      if (inbox_.size() > 0) {
        const auto bytes = inbox_.cdata();
        const std::string_view text{static_cast<const char*>(bytes.data()), bytes.size()};
        BERTH_CO_TRY(const std::size_t used, reader_->feed(text));
        inbox_.consume(used);
        BERTH_CO_DO(count_body());
        if (reader_->stage() >= wanted) co_return Result<>{};
      }
      const auto [error, size] = co_await stream_.async_read_some(
          inbox_.prepare(read_bytes), asio::as_tuple(asio::use_awaitable));
      // The sweep may find a connection overdue although its next bytes have just arrived.
      if (error || timed_out_) co_return std::unexpected(interrupted(error));
      inbox_.commit(size);
      if (phase_ == Phase::idle) begin_reading();
    }
  }

  void begin_reading() {
    phase_ = Phase::reading;
    // The first request of a connection is timed from the connection's start.
    if (std::exchange(is_first_, false)) return;
    set_deadline_in(limits_.header_timeout);
  }

  Error interrupted(const boost::system::error_code& error) {
    if (std::exchange(timed_out_, false)) {
      return Error{Errc::request_timed_out, "the request did not arrive in time",
                   "send the request without pauses"};
    }
    const bool half_sent = phase_ == Phase::reading;
    if (half_sent && error == asio::error::eof) {
      return Error{Errc::bad_request, "the request ends in the middle"};
    }
    return Error{Errc::cancelled, "the client is gone"};
  }

  Result<> count_body() {
    const std::size_t bytes = request_.body.size();
    if (bytes <= limits_.small_body_bytes) return {};
    if (!hold(bytes - buffered_bytes_)) return std::unexpected(crowded());
    return {};
  }

  // Counts bytes that the server keeps for this connection, until the next request.
  bool hold(std::size_t bytes) {
    if (!traffic_.held_bytes().add(holder_, bytes)) return false;
    buffered_bytes_ += bytes;
    return true;
  }
  void let_go() {
    traffic_.held_bytes().remove(holder_, std::exchange(buffered_bytes_, 0));
    holder_ = {};
  }
  // A body that no handler gets does not count while its client is slow to read the error.
  void drop_body() {
    request_.body = {};
    traffic_.held_bytes().remove(holder_, std::exchange(buffered_bytes_, 0));
  }
  static Error crowded() {
    return Error{Errc::overloaded, "the server holds too many bodies of requests and answers",
                 "send the request again a little later"};
  }

  // Answers a request that gets no handler. Unless it was read completely, the bytes that follow it
  // cannot be trusted to be a request.
  asio::awaitable<Next> refuse(Error error, const Route* route) {
    if (error.code == Errc::cancelled) co_return Next::close;
    if (request_.request_id.empty()) request_.request_id = traffic_.next_request_id();
    const bool whole = reader_->stage() == Stage::done && began_ != Moment{};
    if (whole) co_return co_await deliver_error(error, route);
    drop_body();
    co_await deliver(error_response(error), route, Persistence::close);
    co_return Next::linger;
  }

  asio::awaitable<Next> respond(const Match& match, std::optional<core::Caller> known) {
    const Handler& handler = match.route->handler;
    if (const auto* plain = std::get_if<PlainHandler>(&handler)) {
      co_return co_await respond_plain(*plain, match, std::move(known));
    }
    if (reader_->head().method == Head::Method::head) {
      const Error error{Errc::method_not_allowed, "a stream has no HEAD", "use GET"};
      co_return co_await deliver_error(error, match.route);
    }
    Result<Admitted> admitted = co_await admit_stream(*match.route, std::move(known));
    if (!admitted) co_return co_await deliver_error(admitted.error(), match.route);
    const Streaming streaming{traffic_, *this, *std::move(admitted->share)};
    if (const auto* events = std::get_if<EventHandler>(&handler)) {
      co_return co_await respond_events(*events, std::move(admitted->call), match);
    }
    co_return co_await respond_socket(std::get<SocketHandler>(handler), std::move(admitted->call),
                                      match);
  }

  Task<Admitted> admit_stream(const Route& route, std::optional<core::Caller> known) {
    if (!known) {
      BERTH_CO_TRY(known, co_await guarded(dispatcher_.authenticate(request_, route), request_));
    }
    co_return dispatcher_.admit(*std::move(known), request_, route, place());
  }

  asio::awaitable<Next> respond_plain(const PlainHandler& handler, const Match& match,
                                      std::optional<core::Caller> known) {
    Task<Answered> work =
        guarded(dispatcher_.answer(handler, request_, match, place(), std::move(known)), request_);
    Result<Answered> answer = match.route->ends_with_client
                                  ? co_await while_client_stays(std::move(work))
                                  : co_await std::move(work);
    if (!answer && !stream_.lowest_layer().is_open()) co_return Next::close;
    if (!answer) co_return co_await deliver_error(answer.error(), match.route);
    // The body is no longer needed; the response is counted in its place.
    request_.body = {};
    let_go();
    holder_ = std::move(answer->holder);
    co_return co_await deliver(std::move(answer->response), match.route, persistence());
  }

  // Work for a client that goes is cancelled, so that it gives its share of requests back.
  Task<Answered> while_client_stays(Task<Answered> work) {
    using namespace asio::experimental::awaitable_operators;
    auto ended = co_await (std::move(work) || until_client_goes());
    if (auto* answer = std::get_if<0>(&ended)) co_return std::move(*answer);
    abort();
    co_return fail(Errc::cancelled, "the client is gone");
  }

  // Looks at the socket and reads nothing: what the client sends meanwhile is its next request. The
  // first look is late, so that a client that only sends no more gets an answer that is soon there.
  asio::awaitable<void> until_client_goes() {
    asio::steady_timer next{stream_.get_executor()};
    pollfd client{.fd = -1, .events = POLLRDHUP, .revents = 0};
    do {
      next.expires_after(limits_.departure_interval);
      co_await next.async_wait(asio::use_awaitable);
      client.fd = stream_.lowest_layer().native_handle();
    } while (::poll(&client, 1, 0) == 0);
  }

  // The handler, the watch on the client and the pulse run side by side; whichever ends first ends
  // the others.
  asio::awaitable<Next> respond_events(const EventHandler& handler, core::Call call,
                                       const Match& match) {
    using namespace asio::experimental::awaitable_operators;
    EventWriter<Stream> sink{stream_, *this, traffic_, delivery(Persistence::close)};
    Task<> events = handler(std::move(call), request_, match.values, sink);
    const auto ended = co_await (guarded(std::move(events), request_) || sink.watch() ||
                                 sink.pulse(drained_) || watch_rights(*match.route));
    const auto* handled = std::get_if<0>(&ended);
    const bool failed = handled != nullptr && !*handled && sink.open();
    if (failed && !sink.started()) co_return co_await deliver_error(handled->error(), match.route);
    if (failed) {
      Event last{.name = "error", .data = error_response(shown(handled->error())).body};
      co_await sink.send(std::move(last));
    }
    finish(match.route, 200);
    co_return Next::close;
  }

  asio::awaitable<Next> respond_socket(const SocketHandler& handler, core::Call call,
                                       const Match& match) {
    drained_.expires_at(Moment::max());
    Upgrade upgrade{
        .handler = handler, .request = request_, .values = match.values, .call = std::move(call)};
    Result<> served = Result<>{};
    if (inbox_.size() > 0) {
      served = fail(Errc::bad_request, "the client sent frames before the upgrade was answered");
    } else {
      using namespace asio::experimental::awaitable_operators;
      Task<> socket = serve_socket(stream_, std::move(upgrade), traffic_, drained_);
      auto ended = co_await (guarded(std::move(socket), request_) || watch_rights(*match.route));
      if (auto* result = std::get_if<0>(&ended)) served = std::move(*result);
    }
    if (!served) co_return co_await deliver_error(served.error(), match.route);
    finish(match.route, 101);
    co_return Next::close;
  }

  // The body is read while it is relayed.
  asio::awaitable<Next> relay(const Match& match) {
    traffic_.works(*this);
    phase_ = Phase::working;
    clear_deadline();
    drained_.expires_at(Moment::max());
    Result<unsigned> status = co_await guarded(pass_on(match), request_);
    const Next next = reader_->stage() == Stage::done ? Next::close : Next::linger;
    if (status) {
      finish(match.route, *status);
      co_return next;
    }
    if (status.error().code == Errc::cancelled) co_return Next::close;
    // Bytes that the client sent after the request are lost, so this connection serves nothing
    // more.
    co_await deliver(error_response(shown(status.error())), match.route, Persistence::close);
    co_return next;
  }

  Task<unsigned> pass_on(const Match& match) {
    BERTH_CO_DO(check_destination(request_));
    BERTH_CO_TRY(Admitted admitted, co_await admit_stream(*match.route, std::nullopt));
    const Streaming streaming{traffic_, *this, *std::move(admitted.share)};
    const auto& dial = std::get<RelayHandler>(match.route->handler);
    BERTH_CO_TRY(Fd server, co_await dial(std::move(admitted.call), request_, match.values));
    Relaying what{.server = std::move(server),
                  .request = request_,
                  .reader = *reader_,
                  .inbox = inbox_,
                  .prefix_bytes = bytes_above(match.route->path),
                  .delivery = delivery(Persistence::close)};
    using namespace asio::experimental::awaitable_operators;
    Task<unsigned> relay = serve_relay(stream_, std::move(what), traffic_, drained_);
    auto ended = co_await (guarded(std::move(relay), request_) || watch_rights(*match.route));
    if (auto* status = std::get_if<0>(&ended)) co_return std::move(*status);
    co_return fail(Errc::cancelled, "the client is gone");
  }

  // A stream may outlive the key that opened it. A caller that lost its permission is cut off like
  // a broken connection, so that its work ends in the same way. Never returns by itself.
  asio::awaitable<void> watch_rights(const Route& route) {
    asio::steady_timer next{stream_.get_executor()};
    while (true) {
      next.expires_after(limits_.rights_interval);
      co_await next.async_wait(asio::use_awaitable);
      const Result<core::Caller> still =
          co_await guarded(dispatcher_.authenticate(request_, route), request_);
      // A check that cannot be made now is retried.
      const bool is_refused = !still && (still.error().code == Errc::unauthenticated ||
                                         still.error().code == Errc::forbidden);
      if (!is_refused) continue;
      log::info("http.rights_ended", {{"request", request_.request_id}, {"path", request_.path}});
      abort();
      next.expires_at(std::chrono::steady_clock::time_point::max());
      co_await next.async_wait(asio::use_awaitable);
    }
  }

  // The length of the path prefix that matches a route's path without its final "/*".
  std::size_t bytes_above(std::string_view route_path) const {
    std::size_t at = 0;
    for (auto i = std::ranges::count(route_path, '/'); i > 1; --i) {
      at = request_.path.find('/', at + 1);
    }
    return at;
  }

  asio::awaitable<Next> deliver_error(const Error& error, const Route* route) {
    drop_body();
    co_return co_await deliver(error_response(shown(error)), route, persistence());
  }

  // The error as the client sees it. Our own failures are logged, and details of a bug appear only
  // in the log.
  Error shown(const Error& error) const {
    // A sandbox's failure is not this server's failure.
    const bool is_ours = error.code != Errc::overloaded && error.code != Errc::port_unreachable;
    if (status_of(error.code) >= 500 && is_ours) {
      log::error("http.request_failed", {{"request", request_.request_id},
                                         {"path", request_.path},
                                         {"code", error.code},
                                         {"error", error.message}});
    }
    if (error.code != Errc::bug) return error;
    return Error{Errc::bug, "the server failed on request " + request_.request_id,
                 "look for this request in the server's log"};
  }

  asio::awaitable<Next> deliver(Response response, const Route* route, Persistence persistence) {
    constexpr std::size_t joined_bytes_max = 16UL * 1024;
    // From here on the server waits for the client.
    traffic_.waits(*this);
    phase_ = Phase::writing;
    set_deadline_in(limits_.write_timeout);
    if (response.body.size() > joined_bytes_max && !hold(response.body.size())) {
      response = error_response(crowded());
    }
    out_.clear();
    append_head(out_, response, delivery(persistence));
    if (reader_->stage() != Stage::head && reader_->head().method == Head::Method::head) {
      response.body.clear();
    }
    const bool joined = response.body.size() <= joined_bytes_max;
    if (joined) out_ += std::exchange(response.body, {});
    const std::array buffers{asio::buffer(out_), asio::buffer(response.body)};
    const auto [error, size] =
        co_await asio::async_write(stream_, buffers, asio::as_tuple(asio::use_awaitable));
    finish(route, response.status);
    // A drain that began during the write found no idle connection to close.
    const bool again = !error && persistence == Persistence::keep_alive && !traffic_.draining();
    co_return again ? Next::request : Next::close;
  }

  void finish(const Route* route, unsigned status) {
    const bool known =
        reader_->stage() != Stage::head && reader_->head().method != Head::Method::other;
    const auto took = began_ == Moment{} ? std::chrono::nanoseconds{0}
                                         : std::chrono::steady_clock::now() - began_;
    traffic_.observer().request_finished(route != nullptr ? std::string_view{route->path} : "",
                                         known ? name_of(request_.verb) : "other", status, took);
    if (!log::enabled(log::Level::debug)) return;
    log::debug("http.request", {{"request", request_.request_id},
                                {"verb", name_of(request_.verb)},
                                {"path", request_.path},
                                {"status", status},
                                {"us", took.count() / 1000}});
  }

  // A client that is still sending would lose our response to a reset, so it gets time to read it.
  asio::awaitable<void> linger() {
    constexpr std::size_t dropped_bytes_max = 1024UL * 1024;
    set_deadline_in(limits_.linger_timeout);
    boost::system::error_code gone;
    if constexpr (std::same_as<Stream, TcpSocket>) {
      stream_.shutdown(TcpSocket::shutdown_send, gone);
    }
    std::array<char, 1024> scratch{};
    for (std::size_t dropped = 0; !gone && dropped < dropped_bytes_max;) {
      const auto [error, size] = co_await stream_.async_read_some(
          asio::buffer(scratch), asio::as_tuple(asio::use_awaitable));
      gone = error;
      dropped += size;
    }
  }

  Persistence persistence() const {
    const bool keep = reader_->keeps_alive() && !traffic_.draining() && place() == Place::usual;
    return keep ? Persistence::keep_alive : Persistence::close;
  }

  Delivery delivery(Persistence persistence) const {
    return Delivery{.version = reader_->head().version,
                    .persistence = persistence,
                    .path = request_.path,
                    .request_id = request_.request_id,
                    .date = traffic_.date()};
  }

  Stream stream_;
  Dispatcher& dispatcher_;
  Traffic& traffic_;
  const Limits& limits_;
  DrainSignal drained_;
  Request request_;  // reused, so that its strings keep their capacity
  std::optional<RequestReader> reader_;
  boost::beast::flat_buffer inbox_;
  std::string out_;
  Phase phase_ = Phase::idle;
  bool is_first_ = true;
  bool timed_out_ = false;
  BytesHolder holder_;
  std::size_t buffered_bytes_ = 0;
  Moment began_ = {};  // when the head was complete
};

// The end of a session as its task sees it: nothing that a client does is our error.
template <class Stream>
Task<> run_session(Stream stream, Arrival arrival, Dispatcher& dispatcher, Traffic& traffic) {
  try {
    Session<Stream> session{std::move(stream), arrival, dispatcher, traffic};
    co_return co_await session.run();
  } catch (const boost::system::system_error& error) {
    if (error.code() == asio::error::operation_aborted) co_return Result<>{};
    co_return fail(Errc::bug, std::string{"http session: "} + error.what());
  } catch (const std::exception& error) {
    co_return fail(Errc::bug, std::string{"http session: "} + error.what());
  }
}

}  // namespace berth::http
