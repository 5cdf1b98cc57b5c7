#include "app/places.hpp"

#include "base/files.hpp"
#include "base/log.hpp"
#include "cli/keeper_program.hpp"
#include "places/local/local.hpp"
#include "places/remote/plugin.hpp"
#include "places/sandbox.hpp"
#include "places/ssh/ssh.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "places/fake/fake.hpp"

namespace berth::app {

Result<std::unique_ptr<Places>> Places::open(asio::io_context& loop, const Clock& clock,
                                             Random& random, const Home& home,
                                             const cli::Settings& settings, PluginParts& plugins) {
  BERTH_TRY(const std::string keeper, cli::keeper_program(settings));
  BERTH_DO(keeper::make_state_root(home.leases_folder()));
  BERTH_DO(make_directories(home.ssh_folder(), 0700));
  BERTH_DO(keeper::make_state_root(home.sandboxes_folder()));
  const asio::any_io_executor executor = loop.get_executor();
  std::unique_ptr<Places> out{new Places{loop, clock}};
  out->providers_.add(std::make_unique<providers::Fake>(random, clock));
  auto own = std::make_unique<providers::Linux>(
      executor, out->pool_, random, clock,
      providers::LinuxOptions{.state_root = home.sandboxes_folder(),
                              .keeper_program = keeper,
                              .images_folder = home.images_folder(),
                              .templates_folder = home.templates_folder(),
                              .egress_gateway = &out->egress_gateway_,
                              .homes_root = home.homes_folder()});
  out->linux_ = own.get();
  out->providers_.add(std::move(own));
  using core::DriverKind;
  drivers::Registry& drivers = out->drivers_;
  drivers.add(DriverKind::local, std::make_unique<drivers::Local>(
                                     executor, out->pool_,
                                     drivers::LocalOptions{.state_root = home.leases_folder(),
                                                           .keeper_program = keeper},
                                     home.homes_folder()));
  BERTH_TRY(auto ssh, drivers::Ssh::open(executor, clock, out->egress_gateway_.resolver(),
                                         drivers::ssh::Options{.keeper_program = keeper,
                                                               .control_root = home.ssh_folder()}));
  drivers.add(DriverKind::ssh, std::move(ssh));
  out->from_plugins_ = std::make_unique<drivers::Plugin>(plugins.sandboxes(), DriverKind::sandbox);
  drivers.add(DriverKind::sandbox,
              std::make_unique<drivers::Sandbox>(out->providers_, out->from_plugins_.get()));
  drivers.add(DriverKind::plugin,
              std::make_unique<drivers::Plugin>(plugins.drivers(), DriverKind::plugin));
  return out;
}

Task<bool> Places::makes_sandboxes() {
  BERTH_CO_TRY(providers::Provider* const own, providers_.find("linux"));
  bj::object config{{"provider", "linux"}};
  const Result<providers::Verdict> verdict = co_await own->probe(std::move(config));
  if (verdict && verdict->ok) co_return true;
  const std::string why = verdict ? verdict->summary : verdict.error().message;
  log::warn("sandbox.unavailable", {{"error", why}});
  co_return false;
}

}  // namespace berth::app
