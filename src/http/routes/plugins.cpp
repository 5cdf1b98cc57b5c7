#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {
namespace {

using core::Permission;

constexpr Bounds log_lines{.usual = 25, .least = 1, .most = 500};
constexpr Bounds egress_entries{.usual = 100, .least = 1, .most = 1000};

// An id or a key.
struct PluginPath {
  std::string plugin;
};
BOOST_DESCRIBE_STRUCT(PluginPath, (), (plugin))

struct StatusQuery {
  std::optional<core::PluginState> status;
};
BOOST_DESCRIBE_STRUCT(StatusQuery, (), (status))

struct UninstallQuery {
  std::optional<bool> purge;
  std::optional<bool> force;
};
BOOST_DESCRIBE_STRUCT(UninstallQuery, (), (purge, force))

struct PluginLogQuery {
  std::optional<std::int64_t> limit;
  std::optional<core::PluginLogLevel> level;
  std::optional<Time> since;
};
BOOST_DESCRIBE_STRUCT(PluginLogQuery, (), (limit, level, since))

struct PluginEgressQuery {
  std::optional<std::int64_t> limit;
};
BOOST_DESCRIBE_STRUCT(PluginEgressQuery, (), (limit))

struct ConfigQuery {
  core::CompanyId company_id;
};
BOOST_DESCRIBE_STRUCT(ConfigQuery, (), (company_id))

Task<std::vector<core::PluginLogLine>> read_logs(engine::Plugins& plugins, core::Call call,
                                                 std::string name, PluginLogQuery query) {
  BERTH_CO_TRY(const std::int64_t limit, bounded("limit", query.limit, log_lines));
  co_return co_await plugins.logs(std::move(call), std::move(name),
                                  {.level = query.level, .since = query.since}, limit);
}

Task<engine::PluginEgressLog> read_egress(engine::Plugins& plugins, core::Call call,
                                          std::string name, PluginEgressQuery query) {
  BERTH_CO_TRY(const std::int64_t limit, bounded("limit", query.limit, egress_entries));
  co_return co_await plugins.egress(std::move(call), std::move(name), limit);
}

std::vector<Route> life_routes(engine::Plugins& plugins) {
  return {
      Endpoint<None, StatusQuery, None, std::vector<engine::PluginView>>{
          .verb = Verb::get,
          .path = "/api/plugins",
          .needs = Permission::company_read,
          .tag = "plugins",
          .says = "List the plugins of this instance, in the order in which they were installed",
          .call = [&plugins](core::Call call,
                             auto in) { return plugins.list(call, in.query.status); }},
      Endpoint<None, None, engine::InstallPlugin, engine::PluginView>{
          .verb = Verb::post,
          .path = "/api/plugins/install",
          .needs = Permission::instance_admin,
          .tag = "plugins",
          .says = "Install a plugin from a folder, an archive or the npm registry, and start it",
          .status = 201,
          .call = [&plugins](core::Call call,
                             auto in) { return plugins.install(call, std::move(in.body)); }},
      Endpoint<PluginPath, None, None, engine::PluginView>{
          .verb = Verb::get,
          .path = "/api/plugins/{plugin}",
          .needs = Permission::company_read,
          .tag = "plugins",
          .says = "Read what is known of a plugin, by its id or its key",
          .call = [&plugins](core::Call call,
                             auto in) { return plugins.get(call, in.path.plugin); }},
      Endpoint<PluginPath, UninstallQuery, None, engine::PluginView>{
          .verb = Verb::delete_,
          .path = "/api/plugins/{plugin}",
          .needs = Permission::instance_admin,
          .tag = "plugins",
          .says = "Uninstall a plugin; refused while it holds sandboxes, unless forced",
          .call =
              [&plugins](core::Call call, auto in) {
                return plugins.uninstall(call, in.path.plugin,
                                         {.purge = in.query.purge.value_or(false),
                                          .force = in.query.force.value_or(false)});
              }},
      Endpoint<PluginPath, None, None, engine::PluginView>{
          .verb = Verb::post,
          .path = "/api/plugins/{plugin}/enable",
          .needs = Permission::instance_admin,
          .tag = "plugins",
          .says = "Start a plugin that is disabled or failed, or accept its upgrade that waits",
          .call = [&plugins](core::Call call,
                             auto in) { return plugins.enable(call, in.path.plugin); }},
      Endpoint<PluginPath, None, engine::DisablePlugin, engine::PluginView>{
          .verb = Verb::post,
          .path = "/api/plugins/{plugin}/disable",
          .needs = Permission::instance_admin,
          .tag = "plugins",
          .says = "Stop a plugin until it is enabled again; its sandboxes wait for it",
          .call =
              [&plugins](core::Call call, auto in) {
                return plugins.disable(call, in.path.plugin, std::move(in.body));
              }},
      Endpoint<PluginPath, None, None, engine::PluginView>{
          .verb = Verb::post,
          .path = "/api/plugins/{plugin}/restart",
          .needs = Permission::instance_admin,
          .tag = "plugins",
          .says = "Start another worker in place of the one that runs or has failed",
          .call = [&plugins](core::Call call,
                             auto in) { return plugins.restart(call, in.path.plugin); }},
      Endpoint<PluginPath, None, engine::PluginEgressRequest, engine::PluginView>{
          .verb = Verb::put,
          .path = "/api/plugins/{plugin}/egress",
          .needs = Permission::instance_admin,
          .tag = "plugins",
          .says = "Set what a plugin may reach besides the public internet, from now on",
          .call =
              [&plugins](core::Call call, auto in) {
                return plugins.set_egress(call, in.path.plugin, std::move(in.body));
              }},
      Endpoint<PluginPath, PluginEgressQuery, None, engine::PluginEgressLog>{
          .verb = Verb::get,
          .path = "/api/plugins/{plugin}/egress",
          .needs = Permission::instance_admin,
          .tag = "plugins",
          .says = "What a plugin may reach besides the public internet, and the newest decisions "
                  "about its requests since the server started, oldest first",
          .call =
              [&plugins](core::Call call, auto in) {
                return read_egress(plugins, std::move(call), in.path.plugin, in.query);
              }},
      Endpoint<PluginPath, None, engine::UpgradePlugin, engine::PluginView>{
          .verb = Verb::post,
          .path = "/api/plugins/{plugin}/upgrade",
          .needs = Permission::instance_admin,
          .tag = "plugins",
          .says =
              "Bring a plugin to another version; what it asks for in addition must be accepted",
          .call =
              [&plugins](core::Call call, auto in) {
                return plugins.upgrade(call, in.path.plugin, std::move(in.body));
              }},
  };
}

std::vector<Route> setting_routes(engine::Plugins& plugins) {
  return {
      Endpoint<PluginPath, ConfigQuery, None, std::optional<core::PluginConfigRow>>{
          .verb = Verb::get,
          .path = "/api/plugins/{plugin}/config",
          .needs = Permission::company_operate,
          .tag = "plugins",
          .says = "Read what a company has set for a plugin; null when it has set nothing",
          .call =
              [&plugins](core::Call call, auto in) {
                return plugins.config(call, in.path.plugin, in.query.company_id);
              }},
      Endpoint<PluginPath, None, engine::PluginConfigRequest, core::PluginConfigRow>{
          .verb = Verb::post,
          .path = "/api/plugins/{plugin}/config",
          .needs = Permission::company_admin,
          .tag = "plugins",
          .says = "Set what a company wants of a plugin, by the schema in the plugin's manifest",
          .call =
              [&plugins](core::Call call, auto in) {
                return plugins.set_config(call, in.path.plugin, std::move(in.body));
              }},
      Endpoint<PluginPath, None, engine::PluginConfigRequest, engine::ConfigTest>{
          .verb = Verb::post,
          .path = "/api/plugins/{plugin}/config/test",
          .needs = Permission::company_operate,
          .tag = "plugins",
          .says = "Ask the plugin itself whether a config would do; nothing is stored",
          .call =
              [&plugins](core::Call call, auto in) {
                return plugins.test_config(call, in.path.plugin, std::move(in.body));
              }},
      Endpoint<PluginPath, PluginLogQuery, None, std::vector<core::PluginLogLine>>{
          .verb = Verb::get,
          .path = "/api/plugins/{plugin}/logs",
          .needs = Permission::company_operate,
          .tag = "plugins",
          .says = "Read what a plugin said, the newest first; lines are kept for seven days",
          .call = [&plugins](
                      core::Call call,
                      auto in) { return read_logs(plugins, call, in.path.plugin, in.query); }},
      Endpoint<PluginPath, None, None, engine::PluginHealth>{
          .verb = Verb::get,
          .path = "/api/plugins/{plugin}/health",
          .needs = Permission::company_read,
          .tag = "plugins",
          .says = "Ask how a plugin and its worker fare, and how many sandboxes it holds",
          .call = [&plugins](core::Call call,
                             auto in) { return plugins.health(call, in.path.plugin); }},
  };
}

}  // namespace

std::vector<Route> plugin_routes(engine::Engine& work) {
  std::vector<Route> all = life_routes(work.plugins);
  for (Route& route : setting_routes(work.plugins)) all.push_back(std::move(route));
  return all;
}

}  // namespace berth::http
