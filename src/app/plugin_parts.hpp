#pragma once

#include "app/home.hpp"
#include "app/plugin_egress_gateway.hpp"
#include "cli/config.hpp"
#include "egress/resolver.hpp"
#include "engine/plugins/plugins.hpp"
#include "places/remote/remote_place.hpp"
#include "plugins/host.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <memory>

namespace berth::app {

// Everything that plugins need, built from the settings.
class PluginParts {
 public:
  // The loop, the clock and the services outlive it.
  static Result<std::unique_ptr<PluginParts>> open(asio::io_context& loop, Clock& clock,
                                                   const engine::Services& services,
                                                   const Home& home, const cli::Settings& settings);

  places::remote::RemotePlace& sandboxes() { return sandboxes_; }
  places::remote::RemotePlace& drivers() { return drivers_; }
  engine::PluginPlace& place() { return place_; }
  // The port of this server's own API; set it before the first plugin starts.
  void listens_on(std::uint16_t port) { egress_gateway_.listens_on(port); }
  // Ends every worker, and waits until its messages are in the store. Call it after the drivers are
  // closed.
  Task<> close();

 private:
  PluginParts(asio::io_context& loop, Clock& clock, const engine::Services& services,
              plugins::HostConfig host, engine::PackageOptions packages);

  asio::thread_pool pool_{2};  // for name lookups and removing folders
  egress::SystemResolver resolver_;
  engine::PluginServices services_;
  PluginEgressGateway egress_gateway_;
  plugins::Host host_;
  places::remote::RemotePlace sandboxes_;
  places::remote::RemotePlace drivers_;
  engine::PluginPackages packages_;
  engine::PluginPlace place_;
};

}  // namespace berth::app
