#include "store/plugins.hpp"

#include "store/sql/constraint.hpp"
#include "store/sql/moving.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {
namespace {

using core::Plugin;
using core::PluginConfigRow;
using core::PluginEntity;
using core::PluginLogLine;

constexpr std::string_view plugin_noun = "Plugin";

std::unexpected<Error> no_plugin() {
  return fail(Errc::plugin_not_found, "Plugin not found", "'berth plugin list' shows the plugins");
}

Result<std::int64_t> number_of(const Result<Rows>& found, std::string_view table) {
  if (!found) return std::unexpected(found.error());
  return mapping_detail::to_integer(found->rows.at(0).at(0), table, "count");
}

// The company that owns a value, so that the value is deleted with it; empty for other scopes.
std::optional<std::string> company_of(core::PluginScope kind, const std::string& scope_id) {
  return kind == core::PluginScope::company ? std::optional{scope_id} : std::nullopt;
}

std::unexpected<Error> too_many(std::string_view what, std::int64_t limit) {
  return fail(Errc::overloaded,
              "the plugin keeps " + std::to_string(limit) + " " + std::string{what} + " already",
              "remove some that are no longer needed");
}

}  // namespace

Result<Stored<Plugin>> insert_plugin(Session& session, Plugin plugin) {
  BERTH_TRY(plugin.install_order,
            number_of(query(session, "select coalesce(max(install_order), 0) + 1 from plugins"),
                      "plugins"));
  Result<> done = insert(session, plugin);
  if (!done && violates(done.error(), "plugins_plugin_key")) {
    return fail(Errc::plugin_exists, "Plugin \"" + plugin.plugin_key + "\" is already installed",
                "upgrade it, or uninstall it first");
  }
  if (!done) return std::unexpected(std::move(done).error());
  return Stored<Plugin>{std::move(plugin), 1};
}

Result<Stored<Plugin>> find_plugin(Session& session, const core::PluginId& id) {
  BERTH_TRY(auto found, select_one<Plugin>(session, "where id = $1", id));
  if (found) return *std::move(found);
  return no_plugin();
}

Result<std::optional<Stored<Plugin>>> find_plugin_by_key(Session& session, const std::string& key) {
  return select_one<Plugin>(session, "where plugin_key = $1", key);
}

Result<std::vector<Stored<Plugin>>> list_plugins(Session& session,
                                                 const std::optional<core::PluginState>& status) {
  if (status) {
    return select<Plugin>(session, "where status = $1 order by install_order, id", *status);
  }
  return select<Plugin>(session, "where status <> 'uninstalled' order by install_order, id");
}

Result<Stored<Plugin>> move_plugin(Session& session, Stored<Plugin> plugin, core::PluginEvent event,
                                   std::optional<std::string> error, Time now) {
  plugin.value.last_error = std::move(error);
  plugin.value.updated_at = now;
  return move_row(session, std::move(plugin), event, plugin_noun);
}

Result<Stored<Plugin>> update_plugin(Session& session, Stored<Plugin> plugin, Time now) {
  plugin.value.updated_at = now;
  return rewrite(session, std::move(plugin), plugin_noun);
}

Result<> delete_plugin(Session& session, const core::PluginId& id) {
  BERTH_DO(query(session, "delete from plugins where id = $1", id));
  return {};
}

Result<std::int64_t> count_sandboxes_of(Session& session, const core::PluginId& id,
                                        const core::Reach& reach) {
  // A lease of driver `plugin` has no sandbox row; what it holds is on its own row.
  static const std::string sql =
      "select (select count(*) from sandboxes where plugin_id = $1 and " +
      is_unfinished<core::SandboxState>() +
      " and ($3 = '' or company_id = $3)"
      ") + (select count(*) from environment_leases where sandbox_id is null and " +
      is_unfinished<core::LeaseState>() + " and teardown like $2 and ($3 = '' or company_id = $3))";
  return number_of(query(session, sql, id, "%" + id.str() + "%", reach.sql()), "sandboxes");
}

Result<> retry_teardowns_of(Session& session, const core::PluginId& id, Time now) {
  BERTH_DO(query(session,
                 "update environment_leases set parked_at = null, attempts = 0,"
                 " next_attempt_at = $2, version = version + 1 where status = 'pending_cleanup'"
                 " and claimed_by is null and (teardown like $3 or sandbox_id in"
                 " (select id from sandboxes where plugin_id = $1))",
                 id, now, "%" + id.str() + "%"));
  BERTH_DO(query(session,
                 "update sandboxes set parked_at = null, attempts = 0, next_attempt_at = $2,"
                 " version = version + 1 where plugin_id = $1 and status = 'destroying'",
                 id, now));
  return {};
}

Result<> insert_plugin_folder(Session& session, const core::PluginFolder& folder) {
  return insert(session, folder);
}

Result<> use_plugin_folder(Session& session, const std::string& id, core::PluginFolderUse use,
                           Time now) {
  BERTH_DO(query(session,
                 "update plugin_folders set use = $2, updated_at = $3, version = version + 1"
                 " where id = $1",
                 id, use, now));
  return {};
}

Result<> delete_plugin_folder(Session& session, const std::string& id) {
  BERTH_DO(query(session, "delete from plugin_folders where id = $1", id));
  return {};
}

Result<std::vector<core::PluginFolder>> list_plugin_folders(Session& session) {
  BERTH_TRY(auto rows, select<core::PluginFolder>(session, "order by created_at, id"));
  return values_of(std::move(rows));
}

Result<std::optional<Stored<PluginConfigRow>>> find_plugin_config(Session& session,
                                                                  const core::PluginId& plugin,
                                                                  const core::CompanyId& company) {
  return select_one<PluginConfigRow>(session, "where plugin_id = $1 and company_id = $2", plugin,
                                     company);
}

Result<std::vector<PluginConfigRow>> list_plugin_configs(Session& session,
                                                         const core::PluginId& plugin) {
  BERTH_TRY(auto rows,
            select<PluginConfigRow>(session, "where plugin_id = $1 order by company_id", plugin));
  return values_of(std::move(rows));
}

Result<Stored<PluginConfigRow>> save_plugin_config(Session& session,
                                                   const PluginConfigRow& config) {
  BERTH_TRY(auto found, find_plugin_config(session, config.plugin_id, config.company_id));
  if (found) {
    found->value.config_json = config.config_json;
    found->value.last_error = config.last_error;
    found->value.updated_at = config.updated_at;
    return rewrite(session, *std::move(found), "Config of plugin");
  }
  Result<> done = insert(session, config);
  if (done) return Stored<PluginConfigRow>{config, 1};
  if (!violates_reference(done.error())) return std::unexpected(std::move(done).error());
  return fail(Errc::company_not_found, "Company not found");
}

Result<std::optional<bj::value>> find_plugin_state(Session& session, const core::PluginId& plugin,
                                                   const core::PluginStateKey& key) {
  BERTH_TRY(const Rows found,
            query(session,
                  "select value from plugin_state where plugin_id = $1 and scope_kind = $2"
                  " and scope_id = $3 and name_space = $4 and state_key = $5",
                  plugin, key.scope_kind, key.scope_id, key.name_space, key.state_key));
  if (found.rows.empty()) return std::nullopt;
  BERTH_TRY(bj::value value,
            from_value<bj::value>(found.rows.front().at(0), "plugin_state", "value"));
  return value;
}

Result<> save_plugin_state(Session& session, const core::PluginId& plugin,
                           const core::PluginStateKey& key, const bj::value& value,
                           std::int64_t values_max, Time now) {
  BERTH_TRY(const Rows replaced,
            query(session,
                  "update plugin_state set value = $6, updated_at = $7 where plugin_id = $1"
                  " and scope_kind = $2 and scope_id = $3 and name_space = $4 and state_key = $5",
                  plugin, key.scope_kind, key.scope_id, key.name_space, key.state_key, value, now));
  if (replaced.changed == 1) return {};
  BERTH_TRY(
      const std::int64_t kept,
      number_of(query(session, "select count(*) from plugin_state where plugin_id = $1", plugin),
                "plugin_state"));
  if (kept >= values_max) return too_many("values", values_max);
  const Result<Rows> added =
      query(session,
            "insert into plugin_state (plugin_id, scope_kind, scope_id, name_space, state_key,"
            " company_id, value, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8)",
            plugin, key.scope_kind, key.scope_id, key.name_space, key.state_key,
            company_of(key.scope_kind, key.scope_id), value, now);
  if (added) return {};
  if (violates_reference(added.error())) return no_plugin();
  return std::unexpected(added.error());
}

Result<> delete_plugin_state(Session& session, const core::PluginId& plugin,
                             const core::PluginStateKey& key) {
  BERTH_DO(query(session,
                 "delete from plugin_state where plugin_id = $1 and scope_kind = $2"
                 " and scope_id = $3 and name_space = $4 and state_key = $5",
                 plugin, key.scope_kind, key.scope_id, key.name_space, key.state_key));
  return {};
}

Result<PluginEntity> save_plugin_entity(Session& session, PluginEntity entity,
                                        std::int64_t entities_max) {
  if (entity.external_id) {
    BERTH_TRY(auto found, select_one<PluginEntity>(
                              session,
                              "where plugin_id = $1 and entity_type = $2 and external_id = $3"
                              " and scope_kind = $4 and coalesce(scope_id, '') = $5",
                              entity.plugin_id, entity.entity_type, *entity.external_id,
                              entity.scope_kind, entity.scope_id.value_or("")));
    if (found) {
      const std::optional<core::CompanyId>& owner = found->value.company_id;
      if (owner && entity.company_id && *owner != *entity.company_id) {
        return fail(Errc::forbidden, "entity \"" + *entity.external_id + "\" of type \"" +
                                         entity.entity_type + "\" belongs to another company");
      }
      entity.company_id = owner;
      entity.id = found->value.id;
      entity.created_at = found->value.created_at;
      BERTH_TRY(auto kept,
                rewrite(session, Stored<PluginEntity>{entity, found->version}, "Entity of plugin"));
      return std::move(kept.value);
    }
  }
  BERTH_TRY(const std::int64_t kept,
            number_of(query(session, "select count(*) from plugin_entities where plugin_id = $1",
                            entity.plugin_id),
                      "plugin_entities"));
  if (kept >= entities_max) return too_many("entities", entities_max);
  Result<> done = insert(session, entity);
  if (done) return entity;
  if (violates_reference(done.error())) return no_plugin();
  return std::unexpected(std::move(done).error());
}

Result<std::optional<core::CompanyId>> owner_of_scope(Session& session, core::PluginScope kind,
                                                      const std::string& id) {
  std::string_view table;
  if (kind == core::PluginScope::agent) table = "agents";
  if (kind == core::PluginScope::run) table = "heartbeat_runs";
  if (table.empty()) return std::nullopt;
  BERTH_TRY(const Rows found,
            query(session, "select company_id from " + std::string{table} + " where id = $1", id));
  if (found.rows.empty()) return std::nullopt;
  BERTH_TRY(core::CompanyId owner,
            from_value<core::CompanyId>(found.rows.front().at(0), table, "company_id"));
  return owner;
}

Result<std::vector<PluginEntity>> list_plugin_entities(Session& session,
                                                       const core::PluginId& plugin,
                                                       const EntityFilter& filter,
                                                       std::int64_t limit, std::int64_t offset) {
  Filter conditions;
  conditions.equal("plugin_id", plugin)
      .equal_if("entity_type", filter.entity_type)
      .equal_if("scope_kind", filter.scope_kind)
      .equal_if("scope_id", filter.scope_id)
      .equal_if("external_id", filter.external_id);
  std::vector<Value> values = conditions.values();
  values.push_back(to_value(filter.company_id));
  values.push_back(to_value(limit));
  values.push_back(to_value(offset));
  const std::size_t last = values.size();
  const std::string reached =
      " and (company_id is null or company_id = $" + std::to_string(last - 2) + ")";
  const std::string places = "$" + std::to_string(last - 1) + " offset $" + std::to_string(last);
  BERTH_TRY(auto rows,
            select_bound<PluginEntity>(session,
                                       "where " + conditions.text() + reached +
                                           " order by created_at desc, id desc limit " + places,
                                       values));
  return values_of(std::move(rows));
}

Result<> insert_plugin_log(Session& session, const PluginLogLine& line) {
  BERTH_TRY(const Rows there,
            query(session, "select 1 from plugins where id = $1", line.plugin_id));
  if (there.rows.empty()) return {};
  if (line.company_id) {
    BERTH_TRY(const Rows company,
              query(session, "select 1 from companies where id = $1", *line.company_id));
    if (company.rows.empty()) return {};
  }
  return insert(session, line);
}

Result<std::vector<PluginLogLine>> list_plugin_logs(Session& session, const core::PluginId& plugin,
                                                    const core::Reach& reach,
                                                    const PluginLogFilter& filter,
                                                    std::int64_t limit) {
  Filter conditions;
  conditions.equal("plugin_id", plugin).equal_if("level", filter.level);
  std::vector<Value> values = conditions.values();
  values.push_back(to_value(filter.since.value_or(Time{0})));
  values.push_back(to_value(reach.sql()));
  values.push_back(to_value(limit));
  const auto place = [&](std::size_t from_last) {
    return "$" + std::to_string(values.size() - from_last);
  };
  const std::string tail = "where " + conditions.text() + " and created_at >= " + place(2) +
                           " and (" + place(1) + " = '' or company_id = " + place(1) +
                           ") order by created_at desc, id desc limit " + place(0);
  BERTH_TRY(auto rows, select_bound<PluginLogLine>(session, tail, values));
  return values_of(std::move(rows));
}

Result<std::int64_t> prune_plugin_logs(Session& session, Time before, std::int64_t kept_max,
                                       std::int64_t limit) {
  BERTH_TRY(const Rows old, query(session,
                                  "delete from plugin_logs where id in (select id from plugin_logs"
                                  " where created_at < $1 order by created_at, id limit $2)",
                                  before, limit));
  std::int64_t gone = old.changed;
  BERTH_TRY(const auto plugins, select<Plugin>(session, "order by install_order, id"));
  for (const Stored<Plugin>& plugin : plugins) {
    if (gone >= limit) break;
    BERTH_TRY(const Rows beyond,
              query(session,
                    "delete from plugin_logs where id in (select id from plugin_logs"
                    " where plugin_id = $1 order by created_at desc, id desc limit $2 offset $3)",
                    plugin.value.id, limit - gone, kept_max));
    gone += beyond.changed;
  }
  return gone;
}

}  // namespace berth::store
