#include "engine/plugins/plugins.hpp"
#include "api/tables.hpp"
#include "api/use.hpp"

namespace berth::api {
namespace {

constexpr Bounds log_lines{.usual = 25, .least = 1, .most = 500};
constexpr Bounds egress_entries{.usual = 100, .least = 1, .most = 1000};

// An id or a key.
struct OfPlugin {
  std::string plugin;
};
BOOST_DESCRIBE_STRUCT(OfPlugin, (), (plugin))

struct StatusOption {
  std::optional<core::PluginState> status;
};
BOOST_DESCRIBE_STRUCT(StatusOption, (), (status))

Task<std::vector<engine::PluginView>> list_plugins(engine::Plugins& plugins, core::Call call,
                                                   StatusOption options) {
  co_return co_await plugins.list(std::move(call), options.status);
}

struct UninstallOptions {
  std::optional<bool> purge;
  std::optional<bool> force;
};
BOOST_DESCRIBE_STRUCT(UninstallOptions, (), (purge, force))

Task<engine::PluginView> uninstall(engine::Plugins& plugins, core::Call call, std::string name,
                                   UninstallOptions options) {
  co_return co_await plugins.uninstall(
      std::move(call), std::move(name),
      {.purge = options.purge.value_or(false), .force = options.force.value_or(false)});
}

struct PluginLogOptions {
  std::optional<std::int64_t> limit;
  std::optional<core::PluginLogLevel> level;
  std::optional<Time> since;

  Result<> check() const { return check_bounds({{"limit", limit, log_lines}}); }
};
BOOST_DESCRIBE_STRUCT(PluginLogOptions, (), (limit, level, since))

Task<std::vector<core::PluginLogLine>> read_plugin_logs(engine::Plugins& plugins, core::Call call,
                                                        std::string name,
                                                        PluginLogOptions options) {
  co_return co_await plugins.logs(std::move(call), std::move(name),
                                  {.level = options.level, .since = options.since},
                                  options.limit.value_or(log_lines.usual));
}

struct PluginEgressOptions {
  std::optional<std::int64_t> limit;

  Result<> check() const { return check_bounds({{"limit", limit, egress_entries}}); }
};
BOOST_DESCRIBE_STRUCT(PluginEgressOptions, (), (limit))

Task<engine::PluginEgressLog> read_plugin_egress(engine::Plugins& plugins, core::Call call,
                                                 std::string name, PluginEgressOptions options) {
  co_return co_await plugins.egress(std::move(call), std::move(name),
                                    options.limit.value_or(egress_entries.usual));
}

struct ConfigOptions {
  core::CompanyId company_id;
};
BOOST_DESCRIBE_STRUCT(ConfigOptions, (), (company_id))

Task<std::optional<core::PluginConfigRow>> read_plugin_config(engine::Plugins& plugins,
                                                              core::Call call, std::string name,
                                                              ConfigOptions options) {
  co_return co_await plugins.config(std::move(call), std::move(name),
                                    std::move(options.company_id));
}

}  // namespace

std::vector<Entry> plugin_operations(engine::Plugins& plugins) {
  using core::Permission;
  using engine::Plugins;
  return {
      Operation{.name = "plugin.list",
                .needs = Permission::company_read,
                .says = "List the plugins of this instance, in the order in which they were "
                        "installed",
                .call = use(plugins, list_plugins)},
      Operation{.name = "plugin.install",
                .needs = Permission::instance_admin,
                .says = "Install a plugin from a folder, an archive or the npm registry, and start "
                        "it",
                .call = use(plugins, &Plugins::install)},
      Operation{.name = "plugin.get",
                .needs = Permission::company_read,
                .says = "Read what is known of a plugin, by its id or its key",
                .call = use_on<OfPlugin>(plugins, &Plugins::get)},
      Operation{.name = "plugin.uninstall",
                .needs = Permission::instance_admin,
                .says = "Uninstall a plugin; refused while it holds sandboxes, unless forced",
                .call = use_on<OfPlugin>(plugins, uninstall)},
      Operation{.name = "plugin.enable",
                .needs = Permission::instance_admin,
                .says = "Start a plugin that is disabled or failed, or accept its upgrade that "
                        "waits",
                .call = use_on<OfPlugin>(plugins, &Plugins::enable)},
      Operation{.name = "plugin.disable",
                .needs = Permission::instance_admin,
                .says = "Stop a plugin until it is enabled again; its sandboxes wait for it",
                .call = use_on<OfPlugin>(plugins, &Plugins::disable)},
      Operation{.name = "plugin.restart",
                .needs = Permission::instance_admin,
                .says = "Start another worker in place of the one that runs or has failed",
                .call = use_on<OfPlugin>(plugins, &Plugins::restart)},
      Operation{.name = "plugin.set_egress",
                .needs = Permission::instance_admin,
                .says = "Set what a plugin may reach besides the public internet, from now on",
                .call = use_on<OfPlugin>(plugins, &Plugins::set_egress)},
      Operation{.name = "plugin.egress",
                .needs = Permission::instance_admin,
                .says = "What a plugin may reach besides the public internet, and the newest "
                        "decisions about its requests since the server started, oldest first",
                .call = use_on<OfPlugin>(plugins, read_plugin_egress)},
      Operation{.name = "plugin.upgrade",
                .needs = Permission::instance_admin,
                .says = "Bring a plugin to another version; what it asks for in addition must be "
                        "accepted",
                .call = use_on<OfPlugin>(plugins, &Plugins::upgrade)},
      Operation{.name = "plugin.config",
                .needs = Permission::company_operate,
                .says = "Read what a company has set for a plugin; null when it has set nothing",
                .call = use_on<OfPlugin>(plugins, read_plugin_config)},
      Operation{.name = "plugin.set_config",
                .needs = Permission::company_admin,
                .says = "Set what a company wants of a plugin, by the schema in the plugin's "
                        "manifest",
                .call = use_on<OfPlugin>(plugins, &Plugins::set_config)},
      Operation{.name = "plugin.test_config",
                .needs = Permission::company_operate,
                .says = "Ask the plugin itself whether a config would do; nothing is stored",
                .call = use_on<OfPlugin>(plugins, &Plugins::test_config)},
      Operation{.name = "plugin.logs",
                .needs = Permission::company_operate,
                .says = "Read what a plugin said, the newest first; lines are kept for seven days",
                .call = use_on<OfPlugin>(plugins, read_plugin_logs)},
      Operation{.name = "plugin.health",
                .needs = Permission::company_read,
                .says = "Ask how a plugin and its worker fare, and how many sandboxes it holds",
                .call = use_on<OfPlugin>(plugins, &Plugins::health)},
  };
}

}  // namespace berth::api
