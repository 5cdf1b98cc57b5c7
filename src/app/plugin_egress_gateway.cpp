#include "app/plugin_egress_gateway.hpp"

#include <algorithm>
#include <array>

namespace berth::app {
namespace {

// SSH, HTTP, HTTPS, and the ports where Kubernetes and many services offer HTTPS.
constexpr std::array<std::uint16_t, 5> usual_ports{22, 80, 443, 6443, 8443};
constexpr std::size_t decisions_max = 1000;  // of one plugin, in memory

// Excess entries are dropped from the beginning.
std::vector<egress::LogEntry> joined(std::vector<egress::LogEntry> past,
                                     const egress::WorkerFront& front) {
  std::ranges::move(front.decisions(decisions_max), std::back_inserter(past));
  const std::size_t surplus = past.size() - std::min(past.size(), decisions_max);
  past.erase(past.begin(), past.begin() + static_cast<std::ptrdiff_t>(surplus));
  return past;
}

}  // namespace

PluginEgressGateway::PluginEgressGateway(asio::io_context& loop, egress::Resolver& resolver,
                                         const Clock& clock)
    : loop_(loop), resolver_(resolver), clock_(clock) {}

// If a box has no network namespace, only the ports keep a worker from this server.
std::vector<std::uint16_t> PluginEgressGateway::ports() const {
  std::vector<std::uint16_t> ports{usual_ports.begin(), usual_ports.end()};
  std::erase(ports, own_port_);
  return ports;
}

Result<egress::Policy> PluginEgressGateway::policy_of(std::vector<std::string> allow) const {
  return egress::worker_policy(ports(), {.allow = std::move(allow), .log = egress::LogLevel::all});
}

Result<> PluginEgressGateway::open(Request request) {
  BERTH_TRY(egress::Policy policy, policy_of(std::move(request.allow)));
  egress::WorkerSockets sockets{.names = std::move(request.sockets.names_udp),
                                .proxy = std::move(request.sockets.proxy)};
  for (keeper::PluginSockets::Door& door : request.sockets.doors) {
    sockets.transparent.push_back(std::move(door.listener));
  }
  egress::WorkerFrontOptions options{.worker = request.plugin.str(),
                                     .policy = std::move(policy),
                                     .log_limits = {.entries_max = decisions_max}};
  if (own_port_ != 0) options.own_ports = {own_port_};
  auto front = std::make_shared<egress::WorkerFront>(loop_, resolver_, clock_, std::move(options));
  // close() stops what has begun to listen, also after a failure.
  fronts_[request.plugin] = front;
  return front->listen(std::move(sockets));
}

Result<> PluginEgressGateway::change(const core::PluginId& plugin, std::vector<std::string> allow) {
  BERTH_TRY(egress::Policy policy, policy_of(std::move(allow)));
  const auto found = fronts_.find(plugin);
  if (found != fronts_.end()) found->second->set_policy(std::move(policy));
  return {};
}

Task<> PluginEgressGateway::close(core::PluginId plugin) {
  const auto found = fronts_.find(plugin);
  if (found == fronts_.end()) co_return Result<>{};
  const std::shared_ptr<egress::WorkerFront> front = found->second;
  fronts_.erase(found);
  const Result<> stopped = co_await front->stop();
  // By now they also include the cut connections.
  past_[plugin] = joined(std::move(past_[plugin]), *front);
  co_return stopped;
}

std::vector<bj::object> PluginEgressGateway::decisions(const core::PluginId& plugin,
                                                       std::size_t count) const {
  const auto past = past_.find(plugin);
  const auto front = fronts_.find(plugin);
  std::vector<egress::LogEntry> all;
  if (past != past_.end()) all = past->second;
  if (front != fronts_.end()) all = joined(std::move(all), *front->second);
  std::vector<bj::object> out;
  for (const egress::LogEntry& entry : all) out.push_back(encode(entry).as_object());
  if (out.size() > count) out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(count));
  return out;
}

}  // namespace berth::app
