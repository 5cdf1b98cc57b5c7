#pragma once

#include "base/clock.hpp"
#include "egress/resolver.hpp"
#include "egress/worker_front.hpp"
#include "plugins/way_out.hpp"

#include <boost/asio/io_context.hpp>

#include <map>
#include <memory>

namespace berth::app {

// The network access of every plugin's box: one front of the egress proxy per worker. It resolves
// names itself and reaches what the plugin's policy allows.
class PluginEgressGateway final : public plugins::WayOut {
 public:
  // The loop, the resolver and the clock outlive it.
  PluginEgressGateway(asio::io_context& loop, egress::Resolver& resolver, const Clock& clock);

  // The port of this server's own API, which no plugin may reach on this machine.
  void listens_on(std::uint16_t port) { own_port_ = port; }

  std::vector<std::uint16_t> ports() const override;
  Result<> open(Request request) override;
  Result<> change(const core::PluginId& plugin, std::vector<std::string> allow) override;
  Task<> close(core::PluginId plugin) override;
  std::vector<bj::object> decisions(const core::PluginId& plugin, std::size_t count) const override;

 private:
  Result<egress::Policy> policy_of(std::vector<std::string> allow) const;

  asio::io_context& loop_;
  egress::Resolver& resolver_;
  const Clock& clock_;
  std::uint16_t own_port_ = 0;
  std::map<core::PluginId, std::shared_ptr<egress::WorkerFront>> fronts_;
  std::map<core::PluginId, std::vector<egress::LogEntry>> past_;  // of fronts that are closed
};

}  // namespace berth::app
