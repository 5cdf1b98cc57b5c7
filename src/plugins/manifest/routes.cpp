#include "plugins/manifest/routes.hpp"

#include "base/base64.hpp"
#include "base/json/peek.hpp"
#include "plugins/manifest/manifest_rules.hpp"

#include <algorithm>

namespace berth::plugins {
namespace {

using keepers::OutputKind;

constexpr std::size_t chunk_max = 1'000'000;  // characters
constexpr std::size_t log_total_max = std::size_t{128} << 20;
constexpr std::size_t closed_max = 4096;
constexpr StreamLimits login_limits{.total_max = std::size_t{8} << 20};
constexpr StreamLimits duplex_limits{};

const bj::object& notification_params(const Notification& notification) {
  static const bj::object none;
  return notification.params.is_object() ? notification.params.get_object() : none;
}

std::optional<std::string_view> text_view(const bj::object& params, std::string_view key) {
  const bj::value* value = params.if_contains(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string_view{value->get_string().data(), value->get_string().size()};
}

bool is_too_long(std::string_view chunk) {
  return chunk.size() > chunk_max && rules::characters_in(chunk) > chunk_max;
}

std::optional<std::int64_t> exit_code_of(const bj::object& params) {
  const bj::value* code = params.if_contains("exitCode");
  if (code == nullptr || !code->is_int64()) return std::nullopt;
  return code->get_int64();
}

StreamEnd breach(std::string why) {
  return {.cause = StreamEnd::Cause::breach, .why = std::move(why)};
}

// Contains no text from the worker, because it becomes the reason of the worker's state.
std::unexpected<Error> never_opened() {
  return fail(Errc::plugin_protocol,
              "the worker sent a message for a byte stream that was never opened");
}

}  // namespace

void OutputRoutes::open(const std::string& invocation_id, const std::string& company,
                        LiveOutput& output) {
  routes_[invocation_id] = {.company = company, .output = &output};
  const bool mixed = std::ranges::any_of(
      routes_, [&](const auto& entry) { return entry.second.company != company; });
  if (!mixed) return;
  for (auto& [id, route] : routes_) route.shut = true;
}

void OutputRoutes::close(const std::string& invocation_id) {
  routes_.erase(invocation_id);
}

bool OutputRoutes::take(const Notification& notification) {
  const bj::object& params = notification_params(notification);
  const auto stream = text_view(params, "stream");
  const auto chunk = text_view(params, "chunk");
  if (!notification.invocation_id || !chunk || chunk->empty()) return false;
  if (stream != "stdout" && stream != "stderr") return false;
  if (is_too_long(*chunk)) return false;
  const auto found = routes_.find(*notification.invocation_id);
  if (found == routes_.end()) return false;
  Route& route = found->second;
  // As far as the host can see its sender is honest, so it does not count as noise.
  if (route.shut || route.taken + chunk->size() > log_total_max) return true;
  route.taken += chunk->size();
  route.output->take(stream == "stdout" ? OutputKind::out : OutputKind::err, *chunk);
  return true;
}

Stream::Stream(asio::any_io_executor executor, StreamLimits limits)
    : limits_(limits), waiters_(std::move(executor)) {}

Task<std::optional<std::string>> Stream::read() {
  BERTH_CO_DO(co_await waiters_.wait_for([this] { return end_ || !chunks_.empty(); }));
  if (chunks_.empty()) co_return std::optional<std::string>{};
  std::string chunk = std::move(chunks_.front());
  chunks_.pop_front();
  buffered_ -= chunk.size();
  co_return std::optional{std::move(chunk)};
}

void Stream::take(std::string bytes) {
  if (end_ || bytes.empty()) return;
  if (total_ + bytes.size() > limits_.total_max ||
      buffered_ + bytes.size() > limits_.buffered_max || chunks_.size() >= limits_.frames_max) {
    return finish(breach("the plugin sent more than this stream may hold"));
  }
  total_ += bytes.size();
  buffered_ += bytes.size();
  chunks_.push_back(std::move(bytes));
  waiters_.notify();
}

void Stream::take_malformed() {
  if (++malformed_ < limits_.malformed_max) return;
  finish(breach("the plugin sent " + std::to_string(malformed_) + " frames that are none"));
}

void Stream::finish(StreamEnd end) {
  if (end_) return;
  end_ = std::move(end);
  waiters_.notify();
}

bool StreamRoutes::has_login() const {
  return std::ranges::any_of(routes_, [](const auto& entry) { return entry.second.is_login; });
}

std::size_t StreamRoutes::duplex_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(routes_, [](const auto& entry) { return !entry.second.is_login; }));
}

Result<std::shared_ptr<Stream>> StreamRoutes::reserve_login(const std::string& host_route_id) {
  if (has_login()) {
    return fail(Errc::conflict, "another login terminal of this plugin is open",
                "end that login first: the worker of a plugin has one at a time");
  }
  auto stream = std::make_shared<Stream>(executor_, login_limits);
  routes_[host_route_id] = {.stream = stream, .is_login = true};
  return stream;
}

std::shared_ptr<Stream> StreamRoutes::reserve_duplex(const std::string& host_route_id) {
  auto stream = std::make_shared<Stream>(executor_, duplex_limits);
  routes_[host_route_id] = {.stream = stream};
  return stream;
}

Result<> StreamRoutes::bind(const std::string& host_route_id, const std::string& worker_session_id,
                            Payload payload) {
  const auto found = routes_.find(host_route_id);
  if (found == routes_.end()) return {};
  Route& route = found->second;
  route.session = worker_session_id;
  const std::deque<Notification> held = std::exchange(route.held, {});
  const auto is_exit = [](const Notification& frame) { return frame.method.ends_with(".exit"); };
  // An exit that overtook output is still the end.
  for (const bool exits : {false, true}) {
    for (const Notification& frame : held) {
      if (is_exit(frame) == exits) BERTH_DO(take(frame, payload));
    }
  }
  return {};
}

void StreamRoutes::drop(const std::string& host_route_id) {
  const auto found = routes_.find(host_route_id);
  if (found == routes_.end()) return;
  found->second.stream->finish({.cause = StreamEnd::Cause::closed, .why = "it was closed"});
  routes_.erase(found);
  closed_.push_back(host_route_id);
  if (closed_.size() > closed_max) closed_.pop_front();
}

void StreamRoutes::end_all(const std::string& why) {
  for (auto& [id, route] : routes_) {
    route.stream->finish({.cause = StreamEnd::Cause::worker_gone, .why = why});
  }
  routes_.clear();
  closed_.clear();
}

// Older plugins identify a login only by its session, which is known once they have answered.
StreamRoutes::Route* StreamRoutes::find(const Notification& notification, bool is_login) {
  const bj::object& params = notification_params(notification);
  const auto id = text_view(params, "hostRouteId");
  for (auto& [known, route] : routes_) {
    const bool is_named = id ? *id == known : is_login;
    if (route.is_login == is_login && is_named) return &route;
  }
  return nullptr;
}

Result<bool> StreamRoutes::take(const Notification& notification, Payload payload) {
  const bool is_login = !notification.method.starts_with("duplexChannel.");
  Route* const route = find(notification, is_login);
  const auto session = text_view(notification_params(notification), "workerSessionId");
  if (route == nullptr || !session) return take_unknown(notification, is_login);
  if (route->session == *session) {
    return take_bound(*route, notification, is_login ? Payload::text : payload);
  }
  if (!route->session.empty()) {
    if (is_login) return false;
    return never_opened();
  }
  const auto chunk = text_view(notification_params(notification), "chunk");
  route->held_bytes += chunk ? chunk->size() : 0;
  if (route->held.size() > duplex_limits.frames_max ||
      route->held_bytes > duplex_limits.buffered_max) {
    route->stream->finish(breach("the plugin sent too much before it answered"));
    return true;
  }
  route->held.push_back(notification);
  return true;
}

Result<bool> StreamRoutes::take_unknown(const Notification& notification, bool is_login) const {
  const std::string id = text_in(notification_params(notification), "hostRouteId").value_or("");
  // Of a login that is over, or of a byte stream that is.
  if (is_login || std::ranges::find(closed_, id) != closed_.end()) return false;
  return never_opened();
}

Result<bool> StreamRoutes::take_bound(Route& route, const Notification& notification,
                                      Payload payload) const {
  const bj::object& params = notification_params(notification);
  if (notification.method.ends_with(".exit")) {
    route.stream->finish({.exit_code = exit_code_of(params)});
    return true;
  }
  const auto chunk = text_view(params, "chunk");
  if (chunk && is_too_long(*chunk)) {
    if (!route.is_login) route.stream->finish(breach("the plugin sent a chunk that is too long"));
    return false;
  }
  auto bytes = !chunk                     ? std::nullopt
               : payload == Payload::text ? std::optional{std::string{*chunk}}
                                          : parse_base64(*chunk);
  if (!bytes) {
    route.stream->take_malformed();
    return false;
  }
  route.stream->take(*std::move(bytes));
  return true;
}

}  // namespace berth::plugins
