#pragma once

#include "core/access.hpp"
#include "core/rows/plugin.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Plugin> = "plugins";
template <>
inline constexpr std::string_view table_of<core::PluginFolder> = "plugin_folders";
template <>
inline constexpr std::string_view table_of<core::PluginConfigRow> = "plugin_configs";
template <>
inline constexpr std::string_view table_of<core::PluginEntity> = "plugin_entities";
template <>
inline constexpr std::string_view table_of<core::PluginLogLine> = "plugin_logs";

// Assigns the next installation number. plugin_exists when its key has a row.
Result<Stored<core::Plugin>> insert_plugin(Session& session, core::Plugin plugin);
// plugin_not_found; an uninstalled plugin still has a row.
Result<Stored<core::Plugin>> find_plugin(Session& session, const core::PluginId& id);
Result<std::optional<Stored<core::Plugin>>> find_plugin_by_key(Session& session,
                                                               const std::string& key);
// In installation order; without a status, all except uninstalled ones.
Result<std::vector<Stored<core::Plugin>>> list_plugins(
    Session& session, const std::optional<core::PluginState>& status);
// Moves the plugin to the state that follows on this event, and sets or clears its last error.
// `conflict` when the event is not allowed, or another writer was faster.
Result<Stored<core::Plugin>> move_plugin(Session& session, Stored<core::Plugin> plugin,
                                         core::PluginEvent event, std::optional<std::string> error,
                                         Time now);
Result<Stored<core::Plugin>> update_plugin(Session& session, Stored<core::Plugin> plugin, Time now);
// Also deletes everything that it keeps.
Result<> delete_plugin(Session& session, const core::PluginId& id);

// The plugin's unfinished sandboxes within reach.
Result<std::int64_t> count_sandboxes_of(Session& session, const core::PluginId& id,
                                        const core::Reach& reach);
// Makes the plugin's unfinished leases and unused sandboxes due at once and resets their attempts:
// the plugin is back.
Result<> retry_teardowns_of(Session& session, const core::PluginId& id, Time now);

Result<> insert_plugin_folder(Session& session, const core::PluginFolder& folder);
Result<> use_plugin_folder(Session& session, const std::string& id, core::PluginFolderUse use,
                           Time now);
Result<> delete_plugin_folder(Session& session, const std::string& id);
Result<std::vector<core::PluginFolder>> list_plugin_folders(Session& session);

Result<std::optional<Stored<core::PluginConfigRow>>> find_plugin_config(
    Session& session, const core::PluginId& plugin, const core::CompanyId& company);
// Ordered by company.
Result<std::vector<core::PluginConfigRow>> list_plugin_configs(Session& session,
                                                               const core::PluginId& plugin);
// Inserts or replaces; company_not_found, plugin_not_found.
Result<Stored<core::PluginConfigRow>> save_plugin_config(Session& session,
                                                         const core::PluginConfigRow& config);

// Empty when it was never set.
Result<std::optional<bj::value>> find_plugin_state(Session& session, const core::PluginId& plugin,
                                                   const core::PluginStateKey& key);
// `overloaded` when the plugin would keep more than `values_max`.
Result<> save_plugin_state(Session& session, const core::PluginId& plugin,
                           const core::PluginStateKey& key, const bj::value& value,
                           std::int64_t values_max, Time now);
Result<> delete_plugin_state(Session& session, const core::PluginId& plugin,
                             const core::PluginStateKey& key);

// The company of the agent or run that a scope names; empty when the id has no row, and for any
// other scope kind.
Result<std::optional<core::CompanyId>> owner_of_scope(Session& session, core::PluginScope kind,
                                                      const std::string& id);

struct EntityFilter {
  // Entities of this company and those without a company; absent: only the latter.
  std::optional<core::CompanyId> company_id = {};
  std::optional<std::string> entity_type = {};
  std::optional<core::PluginScope> scope_kind = {};
  std::optional<std::string> scope_id = {};
  std::optional<std::string> external_id = {};
};
// Replaces the entity with the same type, scope and external id; without an external id, always
// inserts. `overloaded` when the plugin would keep more than `entities_max`, `forbidden` when the
// entity belongs to another company.
Result<core::PluginEntity> save_plugin_entity(Session& session, core::PluginEntity entity,
                                              std::int64_t entities_max);
// Newest first.
Result<std::vector<core::PluginEntity>> list_plugin_entities(Session& session,
                                                             const core::PluginId& plugin,
                                                             const EntityFilter& filter,
                                                             std::int64_t limit,
                                                             std::int64_t offset);

// The line is dropped when its plugin or company was deleted meanwhile.
Result<> insert_plugin_log(Session& session, const core::PluginLogLine& line);
struct PluginLogFilter {
  std::optional<core::PluginLogLevel> level = {};
  std::optional<Time> since = {};
};
// Newest first. A line without a company is visible only to callers that reach everything.
Result<std::vector<core::PluginLogLine>> list_plugin_logs(Session& session,
                                                          const core::PluginId& plugin,
                                                          const core::Reach& reach,
                                                          const PluginLogFilter& filter,
                                                          std::int64_t limit);
// Removes up to `limit` lines that are older than `before`, or beyond the newest `kept_max` of
// their plugin; returns how many.
Result<std::int64_t> prune_plugin_logs(Session& session, Time before, std::int64_t kept_max,
                                       std::int64_t limit);

}  // namespace berth::store
