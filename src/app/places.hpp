#pragma once

#include "app/home.hpp"
#include "app/plugin_parts.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "cli/config.hpp"
#include "places/linux/linux.hpp"
#include "places/registry.hpp"

#include <boost/asio/thread_pool.hpp>

#include <memory>

namespace berth::app {

// All places where work runs, built from the settings.
class Places {
 public:
  // The loop, the clock, the random source and the plugins outlive it.
  static Result<std::unique_ptr<Places>> open(asio::io_context& loop, const Clock& clock,
                                              Random& random, const Home& home,
                                              const cli::Settings& settings, PluginParts& plugins);

  const places::Registry& registry() const { return registry_; }
  // Whether this machine can create sandboxes, found by creating one. The reason for a failure is
  // logged.
  Task<bool> makes_sandboxes();
  // The pool that an environment's config requests.
  Task<std::optional<places::PoolCustomer>> pool_customer(bj::object config) {
    return linux_->pool_customer(std::move(config));
  }
  // For all environments: pools that none of them wants are removed.
  void serve_pools(std::vector<places::PoolCustomer> customers) {
    linux_->serve_pools(std::move(customers));
  }
  // Frees disk space by removing unused images.
  Task<images::Removed> collect_images(images::Spared spared) {
    return linux_->collect_images(spared);
  }
  Task<> note_images(std::vector<images::EnvironmentImage> named) {
    return linux_->note_images(std::move(named));
  }
  // Where a process in a sandbox reaches this server's API.
  void reachable_at(egress::Callback callback) {
    egress_gateway_.reachable_at(std::move(callback));
  }
  // The port that this server listens on, even if sandboxes cannot reach the API.
  void listens_on(std::uint16_t port) { egress_gateway_.listens_on(port); }
  // Closes connections; the commands behind them continue.
  Task<> close();

 private:
  Places(asio::io_context& loop, const Clock& clock, PluginParts& plugins)
      : egress_gateway_(loop, pool_, clock), plugins_(plugins) {}

  asio::thread_pool pool_{2};  // for removing folders and other blocking work
  places::EgressGateway egress_gateway_;
  PluginParts& plugins_;
  places::Linux* linux_ = nullptr;  // of the registry
  places::Registry registry_;
};

}  // namespace berth::app
