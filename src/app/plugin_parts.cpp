#include "app/plugin_parts.hpp"

#include "base/files.hpp"
#include "base/remove_tree.hpp"
#include "cli/keeper_program.hpp"

#include <unistd.h>

namespace berth::app {
namespace {

// The newest host version whose plugins this server supports; compared with a manifest's minimum.
constexpr std::string_view compatible_host = "2026.916.1";

plugins::HostEnvironment own_environment() {
  plugins::HostEnvironment out;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equal = text.find('=');
    if (equal != std::string_view::npos) {
      out.emplace(text.substr(0, equal), text.substr(equal + 1));
    }
  }
  return out;
}

keeper::BoxLevel level_of(cli::PluginIsolation isolation) {
  switch (isolation) {
    case cli::PluginIsolation::none: return keeper::BoxLevel::none;
    case cli::PluginIsolation::weak: return keeper::BoxLevel::weak;
    case cli::PluginIsolation::strong: break;
  }
  return keeper::BoxLevel::strong;
}

plugins::HostConfig host_with_way_out(plugins::HostConfig host, plugins::WayOut& way_out) {
  host.way_out = &way_out;
  return host;
}

}  // namespace

PluginParts::PluginParts(asio::io_context& loop, Clock& clock, const engine::Services& services,
                         plugins::HostConfig host, engine::PackageOptions packages)
    : resolver_(loop.get_executor(), pool_),
      services_(services, loop.get_executor(), resolver_),
      egress_gateway_(loop, resolver_, clock),
      host_(loop.get_executor(), host_with_way_out(std::move(host), egress_gateway_), services_,
            clock, services.random),
      sandboxes_(host_, places::remote::Addressing::provider_key),
      drivers_(host_, places::remote::Addressing::plugin_key),
      packages_(loop.get_executor(), pool_, std::move(packages)),
      place_{.host = host_,
             .services = services_,
             .packages = packages_,
             .sandboxes = sandboxes_,
             .drivers = drivers_} {}

Result<std::unique_ptr<PluginParts>> PluginParts::open(asio::io_context& loop, Clock& clock,
                                                       const engine::Services& services,
                                                       const Home& home,
                                                       const cli::Settings& settings) {
  BERTH_TRY(const std::string keeper, cli::keeper_program(settings));
  BERTH_DO(make_directories(home.plugins_folder(), 0755));
  BERTH_DO(make_directories(home.plugin_work_folder(), 0700));
  // Transfers that a killed server left behind have no owner.
  BERTH_DO(remove_tree(home.exchange_folder()));
  BERTH_DO(make_directories(home.exchange_folder(), 0711));
  BERTH_DO(make_directories(home.plugin_files_folder(), 0711));
  const bool is_root = ::geteuid() == 0;
  // Workers run as other users, which may read their programs there and nothing else in the home
  // folder.
  if (is_root) BERTH_DO(home.let_others_through());
  plugins::HostConfig host{.keeper_program = keeper,
                           .folder = home.plugin_work_folder(),
                           .exchange_folder = home.exchange_folder(),
                           .files_folder = home.plugin_files_folder(),
                           .shared_folders = settings.plugin_folders,
                           .home = home.path(),
                           .least_isolation = level_of(settings.plugin_min_isolation)};
  host.files_max.bytes = settings.plugin_files_mb << 20;
  host.environment = own_environment();
  host.instance.host_version = compatible_host;
  host.instance.deployment_mode = name_of(settings.mode);
  engine::PackageOptions packages{.folder = home.plugins_folder(),
                                  .keeper_program = keeper,
                                  .environment = host.environment,
                                  .host_version = std::string{compatible_host}};
  if (is_root) {
    const uid_t fetcher = host.first_user + host.users_max;
    packages.fetcher = plugins::WorkerUser{.uid = fetcher, .gid = fetcher};
  }
  std::unique_ptr<PluginParts> parts{
      new PluginParts{loop, clock, services, std::move(host), std::move(packages)}};
  parts->services_.spare(engine::DiskReserve{home.path()});
  return parts;
}

Task<> PluginParts::close() {
  Result<> outcome = co_await host_.close();
  const Result<> settled = co_await services_.settle();
  if (outcome && !settled) outcome = settled;
  BERTH_CO_DO(co_await services_.stop());
  BERTH_CO_DO(co_await resolver_.stop());
  co_return outcome;
}

}  // namespace berth::app
