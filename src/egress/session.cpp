#include "egress/session.hpp"

#include "base/text.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <cstring>

namespace berth::egress {
namespace {

using boost::system::error_code;

constexpr std::size_t head_read_bytes = 4096;
constexpr std::size_t pump_bytes_min = 16UL * 1024;
constexpr std::size_t pump_bytes_max = 128UL * 1024;
constexpr std::size_t address_tries_max = 4;
constexpr std::chrono::milliseconds pause_step{100};
constexpr std::size_t logged_path_bytes_max = 1024;
constexpr std::size_t dropped_bytes_max = 1024UL * 1024;

Endpoint endpoint_of(const Address& address, std::uint16_t port) {
  using asio::ip::tcp;
  if (address.family == Address::Family::v4) {
    asio::ip::address_v4::bytes_type bytes{};
    std::copy_n(address.bytes.begin(), bytes.size(), bytes.begin());
    return tcp::endpoint{asio::ip::address_v4{bytes}, port};
  }
  return tcp::endpoint{asio::ip::address_v6{address.bytes}, port};
}

}  // namespace

Session::Session(Socket client, Door door, Shared& shared)
    : client_(std::move(client)),
      upstream_(client_.get_executor()),
      door_(door),
      shared_(shared),
      place_(shared.sessions.insert(shared.sessions.end(), this)) {
  error_code ignored;  // a unix socket has no such option
  client_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

Session::~Session() {
  finish();
  shared_.sessions.erase(place_);
}

Task<> Session::run() {
  Next next = Next::request;
  while (next == Next::request) {
    next = door_ == Door::transparent ? co_await pass_through() : co_await exchange();
    finish();
  }
  if (next == Next::linger) co_await linger();
  co_return Result<>{};
}

Task<> Session::turn_away() {
  begin();
  Error error{Errc::overloaded,
              "the sandbox has more than " + std::to_string(shared_.limits.connections_max) +
                  " connections to its proxy",
              "close connections that are not used"};
  const Next next = co_await refuse(std::move(error));
  if (next == Next::linger) co_await linger();
  co_return Result<>{};
}

void Session::begin() {
  entry_ = {};
  request_ = {};
  started_ = {};
  timed_out_ = understood_ = body_sent_ = answered_ = keeps_alive_ = false;
  sent_ = received_ = Result<>{};
  inbox_.shrink();
  answer_inbox_ = {};
  phase_ = inbox_.size() > 0 || first_ ? Phase::head : Phase::idle;
  set_deadline_in(phase_ == Phase::head ? shared_.limits.header_timeout
                                        : shared_.limits.keep_alive_timeout);
}

// Logs the exchange, once.
void Session::finish() {
  address_.reset();
  if (started_ == Moment{}) return;
  const auto took = std::chrono::steady_clock::now() - started_;
  started_ = {};
  entry_.duration_ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  ++shared_.traffic.requests;
  if (entry_.decision == Outcome::denied) ++shared_.traffic.denied;
  shared_.traffic.bytes_up += entry_.bytes_up;
  shared_.traffic.bytes_down += entry_.bytes_down;
  shared_.log.add(std::move(entry_), shared_.policy.log());
  error_code ignored;
  upstream_.close(ignored);
}

void Session::sweep(Moment now) {
  if (now < deadline_) return;
  deadline_ = Moment::max();
  timed_out_ = true;
  error_code ignored;
  switch (phase_) {
    case Phase::head: client_.cancel(ignored); break;
    case Phase::upstream:
    case Phase::answer: upstream_.close(ignored); break;
    case Phase::streaming:
      entry_.reason = "no byte moved for too long";
      abort();
      break;
    case Phase::idle:
    case Phase::lingering: abort(); break;
  }
}

void Session::abort() {
  aborted_ = true;
  error_code ignored;
  client_.close(ignored);
  upstream_.close(ignored);
}

void Session::reconsider() {
  if (!address_) return;
  const Decision decision = decide(*address_);
  if (decision.allowed) {
    entry_.rule = decision.rule;
    return;
  }
  entry_.decision = Outcome::cut;
  entry_.rule = decision.rule;
  entry_.reason = decision.reason;
  abort();
}

asio::awaitable<Session::Next> Session::exchange() {
  begin();
  Result<RequestHead> head = co_await read_head();
  if (!head) co_return co_await refuse(std::move(head).error());
  started_ = std::chrono::steady_clock::now();
  entry_.at = shared_.clock.now();
  entry_.method = clipped(head->method, 32);
  Result<ProxyRequest> request = understand(*head, door_);
  if (!request) {
    entry_.decision = Outcome::denied;
    entry_.rule = "request";
    co_return co_await refuse(std::move(request).error());
  }
  request_ = *std::move(request);
  understood_ = true;
  entry_.host = request_.target.host;
  entry_.port = request_.target.port;
  entry_.path = clipped(request_.path_without_query(), logged_path_bytes_max);
  Result<> reached = co_await reach();
  if (!reached) co_return co_await refuse(std::move(reached).error());
  entry_.decision = Outcome::allowed;
  if (request_.kind == ProxyRequest::Kind::tunnel) co_return co_await tunnel();
  co_return co_await relay();
}

// The client believes that it talks to the target. It gets the target's bytes or a closed
// connection, and none of our own text.
asio::awaitable<Session::Next> Session::pass_through() {
  begin();
  started_ = std::chrono::steady_clock::now();
  entry_.at = shared_.clock.now();
  entry_.method = "TCP";
  Result<Target> target = dialled();
  if (!target) {
    entry_.decision = Outcome::denied;
    entry_.rule = "address";
    co_return co_await refuse(std::move(target).error());
  }
  request_.kind = ProxyRequest::Kind::tunnel;
  request_.target = *std::move(target);
  entry_.host = request_.target.host;
  entry_.port = request_.target.port;
  Result<> reached = co_await reach();
  if (!reached) co_return co_await refuse(std::move(reached).error());
  entry_.decision = Outcome::allowed;
  co_return co_await tunnel();
}

// What the client means by the address that it connected to: the name that the address stands for,
// or the address itself.
Result<Target> Session::dialled() {
  error_code error;
  const Endpoint here = client_.local_endpoint(error);
  const int family = error ? AF_UNSPEC : here.protocol().family();
  if (family != AF_INET && family != AF_INET6) {
    return fail(Errc::forbidden, "the connection leads to no address");
  }
  asio::ip::tcp::endpoint local;
  std::memcpy(local.data(), here.data(), here.size());
  const std::optional<Address> given = Address::parse(local.address().to_string());
  if (!given) return fail(Errc::forbidden, "the connection leads to an address with a zone");
  const Address address = given->plain();
  entry_.address = address.str();
  entry_.port = local.port();
  if (!SyntheticNames::range().contains(address)) {
    return Target{.host = address.str(), .address = address, .port = local.port()};
  }
  if (shared_.names != nullptr) dialled_name_ = shared_.names->name_of(address);
  if (!dialled_name_) {
    return fail(Errc::forbidden, address.str() + " stands for no name",
                "look the name up again before each connection");
  }
  entry_.address.clear();
  return Target{.host = *dialled_name_, .address = {}, .port = local.port()};
}

Task<RequestHead> Session::read_head() {
  HeadEnd end;
  while (true) {
    BERTH_CO_TRY(const std::optional<std::size_t> size, end.find(inbox_.view()));
    const std::size_t least = size.value_or(inbox_.size());
    if (least > shared_.limits.header_bytes_max) {
      co_return fail(
          Errc::header_too_large,
          "the head is longer than " + std::to_string(shared_.limits.header_bytes_max) + " bytes",
          "send fewer or shorter header fields");
    }
    if (size) {
      Result<RequestHead> head = parse_request_head(inbox_.view().substr(0, *size));
      inbox_.used(*size);
      first_ = false;
      co_return head;
    }
    const auto [error, arrived] =
        co_await client_.async_read_some(inbox_.room_for(head_read_bytes), tuple_awaitable);
    if (error || timed_out_) co_return std::unexpected(interrupted(error));
    inbox_.arrived(arrived);
    if (phase_ == Phase::head) continue;
    phase_ = Phase::head;
    set_deadline_in(shared_.limits.header_timeout);
  }
}

Error Session::interrupted(const error_code& error) const {
  if (timed_out_ && phase_ == Phase::head) {
    return Error{Errc::request_timed_out, "the request did not arrive in time",
                 "send the request without pauses"};
  }
  if (error == asio::error::eof && inbox_.size() > 0) {
    return Error{Errc::bad_request, "the request ends in the middle"};
  }
  return Error{Errc::cancelled, "the client is gone"};
}

std::unexpected<Error> Session::denied(const Decision& decision) {
  entry_.decision = Outcome::denied;
  entry_.rule = decision.rule;
  return fail(Errc::forbidden, decision.reason, decision.remedy);
}

// Decides, looks up, decides again with the result, and connects to exactly that address.
Task<> Session::reach() {
  phase_ = Phase::upstream;
  deadline_ = Moment::max();  // the resolver has its own
  if (request_.kind == ProxyRequest::Kind::callback) co_return co_await connect_callback();
  BERTH_CO_TRY(const std::vector<Address> addresses, co_await permitted_addresses());
  const std::size_t tries = std::min(addresses.size(), address_tries_max);
  Result<> connected = fail(Errc::server_unreachable, request_.target.str() + " has no address");
  for (std::size_t at = 0; at < tries && !aborted_; ++at) {
    address_ = addresses[at];
    entry_.address = address_->str();
    set_deadline_in(shared_.limits.connect_timeout / tries);
    connected = co_await connect(endpoint_of(*address_, request_.target.port));
    if (connected) break;
  }
  co_return connected;
}

Task<std::vector<Address>> Session::permitted_addresses() {
  const Target& target = request_.target;
  const Decision first = shared_.policy.decide(target);
  if (!first.allowed) co_return denied(first);
  entry_.rule = first.rule;
  std::vector<Address> addresses;
  if (target.address) {
    addresses.push_back(*target.address);
  } else {
    BERTH_CO_TRY(addresses, co_await look_up());
  }
  for (const Address& address : addresses) {
    const Decision decision = decide(address);
    if (!decision.allowed) entry_.address = address.str();
    if (!decision.allowed) co_return denied(decision);
    entry_.rule = decision.rule;
  }
  co_return addresses;
}

// The API has its own door, which checks paths and tokens. No rule opens another one. The
// interfaces are listed for each decision, because a machine's addresses change.
bool Session::is_own_api(const Address& address) const {
  const std::uint16_t port = request_.target.port;
  const std::optional<Callback>& callback = shared_.callback;
  const bool called_back = callback && callback->unix_path.empty() && port == callback->port;
  if (called_back && address.plain() == callback->address.plain()) return true;
  const bool own_port = called_back || std::ranges::count(shared_.own_ports, port) > 0;
  return own_port && is_this_machine(address);
}

Decision Session::decide(const Address& address) const {
  if (!is_own_api(address)) return shared_.policy.decide(request_.target, address);
  return {.rule = "callback",
          .reason = request_.target.str() + " is the server's own API",
          .remedy = "call it as http://" + std::string{callback_name} + "/api/..."};
}

Task<std::vector<Address>> Session::look_up() {
  if (shared_.lookups >= shared_.limits.lookups_max) {
    co_return fail(Errc::overloaded, "the sandbox looks up too many names at once",
                   "send the request again a little later");
  }
  // Counts down even if the coroutine is destroyed in the middle.
  struct Counted {
    explicit Counted(std::size_t& number) : count(number) { ++count; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --count; }
    std::size_t& count;
  };
  const Counted counted{shared_.lookups};
  co_return co_await shared_.resolver.resolve(request_.target.host);
}

Task<> Session::connect(Endpoint endpoint) {
  error_code ignored;
  upstream_.close(ignored);
  timed_out_ = false;
  const auto [error] = co_await upstream_.async_connect(endpoint, tuple_awaitable);
  if (!error && !aborted_ && !timed_out_) {
    upstream_.set_option(asio::ip::tcp::no_delay(true), ignored);
    co_return Result<>{};
  }
  upstream_.close(ignored);
  if (timed_out_) {
    co_return fail(Errc::timed_out,
                   request_.target.str() + " does not answer at " + entry_.address);
  }
  co_return fail(Errc::server_unreachable,
                 "connect to " + request_.target.str() +
                     (entry_.address.empty() ? "" : " at " + entry_.address) + ": " +
                     error.message());
}

Task<> Session::connect_callback() {
  entry_.rule = "callback";
  if (!shared_.callback) {
    entry_.decision = Outcome::denied;
    co_return fail(Errc::forbidden, "this sandbox has no way to the server's API");
  }
  set_deadline_in(shared_.limits.connect_timeout);
  const Callback& callback = *shared_.callback;
  if (callback.unix_path.empty()) {
    co_return co_await connect(endpoint_of(callback.address, callback.port));
  }
  co_return co_await connect(asio::local::stream_protocol::endpoint{callback.unix_path});
}

asio::awaitable<Session::Next> Session::tunnel() {
  using namespace asio::experimental::awaitable_operators;
  phase_ = Phase::streaming;
  touch();
  if (door_ != Door::transparent) entry_.status = 200;
  std::uint64_t head_bytes = 0;
  const std::string_view established =
      door_ == Door::transparent ? "" : "HTTP/1.1 200 Connection established\r\n\r\n";
  Result<> ready = co_await write_all(client_, established, head_bytes);
  // What the client sent before the response belongs to the tunnel.
  if (ready) ready = co_await write_all(upstream_, inbox_.view(), entry_.bytes_up);
  if (!ready) co_return Next::close;
  inbox_.used(inbox_.size());
  inbox_.shrink();
  co_await (pump(client_, upstream_, entry_.bytes_up) &&
            pump(upstream_, client_, entry_.bytes_down));
  co_return Next::close;
}

// Copies one direction until EOF; the other continues. A broken side ends both.
asio::awaitable<void> Session::pump(Socket& from, Socket& to, std::uint64_t& count) {
  std::size_t size = pump_bytes_min;
  auto room = std::make_unique_for_overwrite<char[]>(size);
  while (true) {
    const auto [error, arrived] =
        co_await from.async_read_some(asio::buffer(room.get(), size), tuple_awaitable);
    error_code ignored;
    if (error == asio::error::eof) {
      to.shutdown(Socket::shutdown_send, ignored);
      co_return;
    }
    if (error) break;
    touch();
    const auto [failed, sent] =
        co_await asio::async_write(to, asio::buffer(room.get(), arrived), tuple_awaitable);
    count += sent;
    if (failed) break;
    touch();
    co_await pace(sent);
    if (arrived < size || size >= pump_bytes_max) continue;
    size *= 2;
    room = std::make_unique_for_overwrite<char[]>(size);
  }
  abort();
}

// Waits in short steps, so that an aborted session ends soon.
asio::awaitable<void> Session::pace(std::size_t bytes) {
  std::chrono::nanoseconds pause = shared_.meter.spend(bytes, std::chrono::steady_clock::now());
  while (pause.count() > 0 && !aborted_) {
    const auto step = std::min<std::chrono::nanoseconds>(pause, pause_step);
    touch();
    asio::steady_timer timer{client_.get_executor(), step};
    co_await timer.async_wait(tuple_awaitable);
    pause -= step;
  }
}

asio::awaitable<Session::Next> Session::refuse(Error error) {
  if (error.code == Errc::cancelled || aborted_) co_return Next::close;
  entry_.reason = error.message;
  // Each refusal is logged before the client learns of it: when a program fails at once, the log
  // must already explain it.
  if (door_ == Door::transparent) {
    finish();
    reset_client();
    co_return Next::close;
  }
  entry_.status = status_of(error.code);
  const bool again = understood_ && !answered_ && request_.keeps_alive &&
                     request_.kind != ProxyRequest::Kind::tunnel && request_.body == Framing{};
  const auto body = request_.method == "HEAD" ? AnswerBody::absent : AnswerBody::present;
  const std::string text = refusal_text({.error = std::move(error), .rule = entry_.rule},
                                        again ? Persistence::keep_alive : Persistence::close, body);
  phase_ = Phase::streaming;
  touch();
  entry_.bytes_down += text.size();
  finish();
  std::uint64_t sent = 0;
  const Result<> written = co_await write_all(client_, text, sent);
  if (!written) co_return Next::close;
  co_return again ? Next::request : Next::linger;
}

// An orderly close could be taken for an empty response.
void Session::reset_client() {
  error_code ignored;
  client_.set_option(asio::socket_base::linger(true, 0), ignored);
  client_.close(ignored);
}

// A client that is still sending would lose our response to a reset, so it gets time to read it.
asio::awaitable<void> Session::linger() {
  phase_ = Phase::lingering;
  set_deadline_in(shared_.limits.linger_timeout);
  error_code gone;
  client_.shutdown(Socket::shutdown_send, gone);
  std::array<char, 4096> scratch{};
  for (std::size_t dropped = 0; !gone && dropped < dropped_bytes_max;) {
    const auto [error, size] =
        co_await client_.async_read_some(asio::buffer(scratch), tuple_awaitable);
    gone = error;
    dropped += size;
  }
}

Task<> Session::write_all(Socket& to, std::string_view text, std::uint64_t& count) {
  const auto [error, sent] = co_await asio::async_write(to, asio::buffer(text), tuple_awaitable);
  count += sent;
  if (error) co_return fail(Errc::server_unreachable, "the connection broke: " + error.message());
  co_return Result<>{};
}

}  // namespace berth::egress
