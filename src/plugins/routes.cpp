#include "plugins/routes.hpp"

#include "base/base64.hpp"
#include "plugins/manifest_rules.hpp"
#include "providers/metadata.hpp"

#include <algorithm>

namespace berth::plugins {
namespace {

using execution::OutputKind;
using providers::text_at;

constexpr std::size_t log_chunk_max = 1'000'000;  // characters
constexpr std::size_t log_total_max = std::size_t{128} << 20;
constexpr std::size_t streams_max = 128;
constexpr std::size_t closed_max = 4096;
constexpr StreamLimits login_limits{.total_max = std::size_t{8} << 20};
constexpr StreamLimits duplex_limits{};

const bj::object& params_of(const Notification& notification) {
  static const bj::object none;
  return notification.params.is_object() ? notification.params.get_object() : none;
}

std::optional<std::string_view> text_view(const bj::object& params, std::string_view key) {
  const bj::value* value = params.if_contains(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string_view{value->get_string().data(), value->get_string().size()};
}

std::optional<std::int64_t> exit_code_of(const bj::object& params) {
  const bj::value* code = params.if_contains("exitCode");
  if (code == nullptr || !code->is_int64()) return std::nullopt;
  return code->get_int64();
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
  const bj::object& params = params_of(notification);
  const auto stream = text_view(params, "stream");
  const auto chunk = text_view(params, "chunk");
  if (!notification.invocation_id || !chunk || chunk->empty()) return false;
  if (stream != "stdout" && stream != "stderr") return false;
  if (chunk->size() > log_chunk_max && rules::characters_in(*chunk) > log_chunk_max) return false;
  const auto found = routes_.find(*notification.invocation_id);
  if (found == routes_.end()) return false;
  Route& route = found->second;
  // Its sender is honest as far as anybody can see, so it does not count as noise.
  if (route.shut || route.taken + chunk->size() > log_total_max) return true;
  route.taken += chunk->size();
  route.output->take(stream == "stdout" ? OutputKind::out : OutputKind::err, *chunk);
  return true;
}

Stream::Stream(asio::any_io_executor executor, StreamLimits limits)
    : limits_(limits), waiters_(std::move(executor)) {}

Task<std::optional<std::string>> Stream::read() {
  BERTH_CO_DO(co_await waiters_.wait_for([this] { return ended_ || !chunks_.empty(); }));
  if (chunks_.empty()) co_return std::optional<std::string>{};
  std::string chunk = std::move(chunks_.front());
  chunks_.pop_front();
  buffered_ -= chunk.size();
  co_return std::optional{std::move(chunk)};
}

void Stream::take(std::string bytes) {
  if (ended_ || bytes.empty()) return;
  total_ += bytes.size();
  buffered_ += bytes.size();
  if (bytes.size() > limits_.chunk_max || total_ > limits_.total_max ||
      buffered_ > limits_.buffered_max || chunks_.size() >= limits_.frames_max) {
    buffered_ -= bytes.size();
    return end(std::nullopt, "the plugin sent more than this stream may hold");
  }
  chunks_.push_back(std::move(bytes));
  waiters_.ring();
}

void Stream::end(std::optional<std::int64_t> exit_code, std::string why) {
  if (ended_) return;
  ended_ = true;
  exit_code_ = exit_code;
  why_ = std::move(why);
  waiters_.ring();
}

Result<std::shared_ptr<Stream>> StreamRoutes::reserve_login(const std::string& host_route_id) {
  if (std::ranges::any_of(routes_, [](const auto& entry) { return entry.second.is_login; })) {
    return fail(Errc::conflict, "a login terminal of this plugin is open already",
                "close it first: a worker has one at a time");
  }
  auto stream = std::make_shared<Stream>(executor_, login_limits);
  routes_[host_route_id] = {.stream = stream, .is_login = true};
  return stream;
}

Result<std::shared_ptr<Stream>> StreamRoutes::reserve_duplex(const std::string& host_route_id) {
  if (routes_.size() >= streams_max) {
    return fail(Errc::overloaded, "too many byte streams of this plugin are open", "close some");
  }
  auto stream = std::make_shared<Stream>(executor_, duplex_limits);
  routes_[host_route_id] = {.stream = stream};
  return stream;
}

void StreamRoutes::bind(const std::string& host_route_id, const std::string& worker_session_id) {
  const auto found = routes_.find(host_route_id);
  if (found == routes_.end()) return;
  found->second.session = worker_session_id;
  const auto waiting = held_.extract(host_route_id);
  if (waiting.empty()) return;
  for (const Notification& frame : waiting.mapped()) (void)take(frame, false);
}

void StreamRoutes::drop(const std::string& host_route_id) {
  const auto found = routes_.find(host_route_id);
  if (found == routes_.end()) return;
  found->second.stream->end(std::nullopt, "it was closed");
  routes_.erase(found);
  held_.erase(host_route_id);
  closed_.push_back(host_route_id);
  if (closed_.size() > closed_max) closed_.pop_front();
}

void StreamRoutes::end_all(const std::string& why) {
  for (auto& [id, route] : routes_) route.stream->end(std::nullopt, why);
  routes_.clear();
  held_.clear();
  closed_.clear();
}

StreamRoutes::Route* StreamRoutes::find(const Notification& notification, bool is_login) {
  const bj::object& params = params_of(notification);
  const auto session = text_at(params, "workerSessionId");
  const auto route = text_at(params, "hostRouteId");
  if (!session) return nullptr;
  for (auto& [id, known] : routes_) {
    if (known.is_login != is_login || (route && *route != id)) continue;
    // Older plugins name a login by its session only, which is known once they have answered.
    if (known.session == *session) return &known;
    if (!known.session.empty()) continue;
    if (!is_login) {
      known.session = *session;
      return &known;
    }
    if (held_[id].size() < duplex_limits.frames_max) held_[id].push_back(notification);
  }
  return nullptr;
}

Result<bool> StreamRoutes::take(const Notification& notification, bool is_base64) {
  const std::string& method = notification.method;
  const bool is_login = !method.starts_with("duplexChannel.");
  Route* const route = find(notification, is_login);
  const bj::object& params = params_of(notification);
  if (route == nullptr) {
    // Of a login that is over, or will be bound; of a byte stream that was never ours.
    const std::string id = text_at(params, "hostRouteId").value_or("");
    const bool was_ours = std::ranges::find(closed_, id) != closed_.end() || routes_.contains(id);
    if (is_login || was_ours) return false;
    return fail(Errc::plugin_protocol,
                "the worker sent " + method + " for a stream that was never opened");
  }
  if (method.ends_with(".exit")) {
    route->stream->end(exit_code_of(params), "");
    return true;
  }
  const auto chunk = text_view(params, "chunk");
  if (!chunk) return false;
  if (is_login || !is_base64) {
    route->stream->take(std::string{*chunk});
    return true;
  }
  auto bytes = parse_base64(*chunk);
  if (!bytes) {
    route->stream->end(std::nullopt, "the plugin sent a chunk that is no base64");
    return false;
  }
  route->stream->take(*std::move(bytes));
  return true;
}

}  // namespace berth::plugins
