#include "app/places.hpp"

#include "base/files.hpp"
#include "base/log.hpp"
#include "cli/keeper_program.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "places/fake/fake.hpp"
#include "places/local/local.hpp"
#include "places/ssh/ssh.hpp"

namespace berth::app {

Result<std::unique_ptr<Places>> Places::open(asio::io_context& loop, const Clock& clock,
                                             Random& random, const Home& home,
                                             const cli::Settings& settings, PluginParts& plugins) {
  BERTH_TRY(const std::string keeper, cli::keeper_program(settings));
  BERTH_DO(keeper::make_state_root(home.leases_folder()));
  BERTH_DO(make_directories(home.ssh_folder(), 0700));
  BERTH_DO(keeper::make_state_root(home.sandboxes_folder()));
  const asio::any_io_executor executor = loop.get_executor();
  std::unique_ptr<Places> out{new Places{loop, clock, plugins}};
  places::Registry& registry = out->registry_;
  registry.add(core::DriverKind::local, std::make_unique<places::Local>(
                                            executor, out->pool_,
                                            places::LocalOptions{.state_root = home.leases_folder(),
                                                                 .keeper_program = keeper},
                                            home.homes_folder()));
  BERTH_TRY(auto ssh, places::Ssh::open(executor, clock, out->egress_gateway_.resolver(),
                                        places::ssh::Options{.keeper_program = keeper,
                                                             .control_root = home.ssh_folder()}));
  registry.add(core::DriverKind::ssh, std::move(ssh));
  auto own = std::make_unique<places::Linux>(
      executor, out->pool_, random, clock,
      places::LinuxOptions{.state_root = home.sandboxes_folder(),
                           .keeper_program = keeper,
                           .images_folder = home.images_folder(),
                           .templates_folder = home.templates_folder(),
                           .egress_gateway = &out->egress_gateway_,
                           .homes_root = home.homes_folder()});
  out->linux_ = own.get();
  registry.add_provider(std::string{core::linux_provider}, std::move(own));
  registry.add_provider("fake", std::make_unique<places::Fake>(random, clock));
  registry.add_plugins(plugins.sandboxes(), plugins.drivers());
  return out;
}

Task<bool> Places::makes_sandboxes() {
  const Result<places::Verdict> verdict =
      co_await linux_->test({{"provider", core::linux_provider}});
  if (verdict && verdict->ok) co_return true;
  const std::string why = verdict ? verdict->summary : verdict.error().message;
  log::warn("sandbox.unavailable", {{"error", why}});
  co_return false;
}

Task<> Places::close() {
  const Result<> closed = co_await registry_.close();
  const Result<> plugins_closed = co_await plugins_.drivers().close();
  co_return closed ? plugins_closed : closed;
}

}  // namespace berth::app
