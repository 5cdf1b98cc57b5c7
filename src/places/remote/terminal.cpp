#include "places/remote/terminal.hpp"

#include "base/base64.hpp"
#include "base/json/peek.hpp"
#include "plugins/manifest/manifest_rules.hpp"

namespace berth::places::remote {
namespace {

using namespace std::chrono_literals;

constexpr auto open_time = 30s;
constexpr auto close_time = 10s;
constexpr std::size_t write_max = 1'000'000;  // characters
constexpr std::size_t pending_max = 256;

}  // namespace

class Terminal::Pending {
 public:
  explicit Pending(Terminal& terminal) : terminal_(terminal) { ++terminal_.pending_; }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  ~Pending() { --terminal_.pending_; }

 private:
  Terminal& terminal_;
};

Terminal::Terminal(std::shared_ptr<Supervisor> plugin, Kind kind, Dialect dialect,
                   std::string host_route_id, std::shared_ptr<Stream> stream)
    : plugin_(std::move(plugin)),
      kind_(kind),
      dialect_(dialect),
      host_route_id_(std::move(host_route_id)),
      stream_(std::move(stream)) {}

Task<std::shared_ptr<Terminal>> Terminal::open(std::shared_ptr<Supervisor> plugin, Kind kind,
                                               std::string host_route_id, bj::object params) {
  plugins::StreamRoutes& routes = plugin->streams();
  Result<std::shared_ptr<Stream>> reserved = kind == Kind::login
                                                 ? routes.reserve_login(host_route_id)
                                                 : routes.reserve_duplex(host_route_id);
  if (!reserved) co_return std::unexpected(reserved.error());
  const auto made = std::make_shared<Terminal>(plugin, kind, plugin->dialect(), host_route_id,
                                               *std::move(reserved));
  params["hostRouteId"] = host_route_id;
  const Result<bj::value> answer = co_await made->ask("Open", std::move(params), open_time);
  if (!answer && answer.error().code == Errc::plugin_call_failed) {
    routes.drop(host_route_id);  // the worker reports that nothing is open
    co_return std::unexpected(answer.error());
  }
  const bj::object* object = answer ? answer->if_object() : nullptr;
  const auto session = object == nullptr ? std::nullopt : text_in(*object, "workerSessionId");
  const bool echoed =
      kind == Kind::login || object == nullptr || text_in(*object, "hostRouteId") == host_route_id;
  if (session && !session->empty() && echoed) {
    made->session_ = *session;
    const plugins::Payload payload =
        made->dialect_ == Dialect::c ? plugins::Payload::base64 : plugins::Payload::text;
    const Result<> bound = routes.bind(host_route_id, *session, payload);
    if (bound) co_return made;
    plugin->punish(bound.error().message);
    co_return std::unexpected(bound.error());
  }
  // It may be open nevertheless.
  const Result<> closed = co_await made->close();
  if (!answer) co_return std::unexpected(answer.error());
  co_return fail(Errc::plugin_protocol, made->method("Open") + ": the answer names no session" +
                                            (closed ? "" : "; " + closed.error().message));
}

std::string Terminal::method(std::string_view verb) const {
  const char* subject = kind_ == Kind::duplex    ? "duplexChannel"
                        : dialect_ == Dialect::c ? "loginPty"
                                                 : "setupTokenPty";
  return subject + std::string{verb};
}

bj::object Terminal::ids() const {
  bj::object ids{{"workerSessionId", session_}};
  if (kind_ == Kind::duplex) ids["hostRouteId"] = host_route_id_;
  return ids;
}

Task<bj::value> Terminal::ask(std::string_view verb, bj::object params,
                              std::chrono::milliseconds deadline) const {
  const std::string name = method(verb);
  PluginCall call{.method = name, .params = std::move(params), .deadline = deadline};
  CallResult answer = co_await plugin_->call(std::move(call));
  if (answer) co_return *std::move(answer);
  co_return std::unexpected(to_error(answer.error(), name));
}

Result<> Terminal::expect_room() {
  if (pending_ < pending_max) return {};
  std::string why = std::to_string(pending_) + " writes wait for the plugin's answers";
  stream_->finish({.cause = StreamEnd::Cause::breach, .why = why});
  return fail(Errc::overloaded, std::move(why), "open it again, and write more slowly");
}

Task<> Terminal::write(std::string bytes) {
  if (end()) co_return fail(Errc::conflict, "the stream has ended: " + end()->why);
  BERTH_CO_DO(expect_room());
  const bool as_base64 = kind_ == Kind::duplex && dialect_ == Dialect::c;
  std::string data = as_base64 ? base64(bytes) : as_utf8(bytes);
  if (data.size() > write_max && plugins::rules::characters_in(data) > write_max) {
    std::string why = "a write of " + std::to_string(bytes.size()) + " bytes is too large";
    stream_->finish({.cause = StreamEnd::Cause::breach, .why = why});
    co_return fail(Errc::command_too_large, std::move(why), "write it in pieces");
  }
  const Pending pending{*this};
  bj::object params = ids();
  params["data"] = std::move(data);
  const char* verb = kind_ == Kind::duplex ? "Write" : "Input";
  BERTH_CO_DO(co_await ask(verb, std::move(params), open_time));
  co_return Result<>{};
}

Task<> Terminal::stop() {
  if (end()) co_return Result<>{};
  BERTH_CO_DO(expect_room());
  const Pending pending{*this};
  BERTH_CO_DO(co_await ask("Stop", ids(), close_time));
  co_return Result<>{};
}

Task<> Terminal::close() {
  // A restarted worker does not know it.
  if (!plugin_->streams().holds(host_route_id_)) co_return Result<>{};
  bj::object params{{"hostRouteId", host_route_id_}};
  if (kind_ == Kind::login && !session_.empty()) params["workerSessionId"] = session_;
  const Result<bj::value> answer = co_await ask("Close", std::move(params), close_time);
  plugin_->streams().drop(host_route_id_);
  const bj::object* object = answer ? answer->if_object() : nullptr;
  const bool names_route = object != nullptr && text_in(*object, "hostRouteId") == host_route_id_;
  const bool names_session = kind_ == Kind::login || session_.empty() ||
                             (object != nullptr && text_in(*object, "workerSessionId") == session_);
  if (names_route && names_session) co_return Result<>{};
  const bool is_gone = !answer && answer.error().code == Errc::plugin_unavailable;
  const bool is_cancelled = !answer && answer.error().code == Errc::cancelled;
  if (is_gone || is_cancelled) co_return Result<>{};
  std::string why = method("Close") + " of " + host_route_id_ + " was not confirmed";
  plugin_->punish(why);
  co_return fail(Errc::plugin_protocol, std::move(why));
}

}  // namespace berth::places::remote
