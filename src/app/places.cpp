#include "app/places.hpp"

#include "base/files.hpp"
#include "cli/keeper_program.hpp"
#include "drivers/local.hpp"
#include "drivers/plugin.hpp"
#include "drivers/sandbox.hpp"
#include "drivers/ssh/ssh.hpp"
#include "providers/fake.hpp"

namespace berth::app {

Result<std::unique_ptr<Places>> Places::open(asio::any_io_executor executor, const Clock& clock,
                                             Random& random, const Home& home,
                                             const cli::Settings& settings) {
  BERTH_TRY(const std::string keeper, cli::keeper_program(settings));
  BERTH_DO(make_directories(home.leases_folder(), 0700));
  BERTH_DO(make_directories(home.ssh_folder(), 0700));
  std::unique_ptr<Places> out{new Places};
  out->providers_.add(std::make_unique<providers::Fake>(random, clock));
  using core::DriverKind;
  drivers::Registry& drivers = out->drivers_;
  drivers.add(DriverKind::local, std::make_unique<drivers::Local>(
                                     executor, out->pool_,
                                     drivers::LocalOptions{.state_root = home.leases_folder(),
                                                           .keeper_program = keeper}));
  BERTH_TRY(auto ssh, drivers::Ssh::open(executor, clock,
                                         drivers::ssh::Options{.keeper_program = keeper,
                                                               .control_root = home.ssh_folder()}));
  drivers.add(DriverKind::ssh, std::move(ssh));
  drivers.add(DriverKind::sandbox, std::make_unique<drivers::Sandbox>(out->providers_));
  drivers.add(DriverKind::plugin, std::make_unique<drivers::Plugin>());
  return out;
}

}  // namespace berth::app
