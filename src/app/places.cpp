#include "app/places.hpp"

#include "base/files.hpp"
#include "drivers/local.hpp"
#include "drivers/plugin.hpp"
#include "drivers/sandbox.hpp"
#include "drivers/ssh/ssh.hpp"
#include "providers/fake.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace berth::app {

Result<std::string> keeper_program(const cli::Settings& settings) {
  std::string path = settings.keeper_program.value_or("");
  if (path.empty()) {
    std::array<char, 4096> self{};
    const ssize_t size = ::readlink("/proc/self/exe", self.data(), self.size());
    if (size <= 0) return io_failure("read", "/proc/self/exe", errno);
    path = parent_of({self.data(), static_cast<std::size_t>(size)}) + "/berth-keeper";
  }
  if (::access(path.c_str(), X_OK) == 0) return path;
  return fail(Errc::config_invalid, path + " is not there or cannot be executed",
              "put berth-keeper beside berth, or name it: --keeper-program PATH");
}

Result<std::unique_ptr<Places>> Places::open(asio::any_io_executor executor, const Clock& clock,
                                             Random& random, const Home& home,
                                             const cli::Settings& settings) {
  BERTH_TRY(const std::string keeper, keeper_program(settings));
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
