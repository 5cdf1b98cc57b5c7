#pragma once

#include "base/json/json.hpp"
#include "core/ids.hpp"
#include "core/lifecycle.hpp"

// Plugins: programs beside the server that provide sandbox providers and environment drivers.
namespace berth::core {

BOOST_DEFINE_ENUM_CLASS(PluginState, installed, ready, disabled, error, upgrade_pending,
                        uninstalled)
// `review_needed`: an upgrade requires more than the operator has accepted.
BOOST_DEFINE_ENUM_CLASS(PluginEvent, activated, failed, disabled, review_needed, uninstalled,
                        installed_again)

std::span<const Step<PluginState, PluginEvent>> plugin_steps();
Result<PluginState> advance(PluginState from, PluginEvent on);

BOOST_DEFINE_ENUM_CLASS(PluginSource, folder, tarball, npm)

// An upgrade that waits for the operator: its package is installed, and the previous one still
// serves.
struct PendingUpgrade {
  std::string version;
  bj::object manifest;
  std::vector<std::string> added_capabilities;
  std::string package_path;
  std::optional<std::string> folder_id = {};

  friend bool operator==(const PendingUpgrade&, const PendingUpgrade&) = default;
};
BOOST_DESCRIBE_STRUCT(PendingUpgrade, (),
                      (version, manifest, added_capabilities, package_path, folder_id))

// What a plugin's worker may reach besides the public internet, set by an administrator.
struct PluginEgress {
  std::vector<std::string> allow = {};  // rules as in an environment's egress policy
  bool kept_private = false;            // private networks, allowed before workers were boxed

  friend bool operator==(const PluginEgress&, const PluginEgress&) = default;
};
BOOST_DESCRIBE_STRUCT(PluginEgress, (), (allow, kept_private))

struct Plugin {
  PluginId id;
  std::string plugin_key;    // the id in its manifest: one installed plugin per key
  std::string package_name;  // what the operator requested
  PluginSource source = PluginSource::folder;
  std::string package_version = {};  // from the manifest, not the package
  std::int64_t api_version = 1;
  std::vector<std::string> categories = {};
  bj::object manifest = {};
  PluginState status = PluginState::installed;
  std::int64_t install_order = 0;  // if two plugins share a provider key, the first one owns it
  std::optional<std::string> package_path = {};
  std::optional<std::string> folder_id = {};  // absent: the operator's own folder, used in place
  std::optional<std::string> last_error = {};
  std::optional<PendingUpgrade> pending_upgrade = {};
  std::optional<PluginEgress> egress = {};
  Time installed_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(Plugin, (),
                      (id, plugin_key, package_name, source, package_version, api_version,
                       categories, manifest, status, install_order, package_path, folder_id,
                       last_error, pending_upgrade, egress, installed_at, updated_at))

// A package folder that this server created. Its row is written before the folder and deleted after
// it, so that anything a crash leaves behind has a row.
BOOST_DEFINE_ENUM_CLASS(PluginFolderUse, fetching, held, discarding)
struct PluginFolder {
  std::string id;  // its name below the plugin folder in the home
  PluginFolderUse use = PluginFolderUse::fetching;
  NodeId node_id;
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(PluginFolder, (), (id, use, node_id, created_at, updated_at))

// A company's settings for a plugin. Secrets are references, which only the plugin's own
// `secrets.resolve` call turns into values.
struct PluginConfigRow {
  EventId id;
  PluginId plugin_id;
  CompanyId company_id;
  bj::object config_json = {};
  std::optional<std::string> last_error = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(PluginConfigRow, (),
                      (id, plugin_id, company_id, config_json, last_error, created_at, updated_at))

BOOST_DEFINE_ENUM_CLASS(PluginScope, instance, company, project, project_workspace, agent, issue,
                        goal, run)

// Where a plugin keeps a value. A scope without an id uses the empty one.
struct PluginStateKey {
  PluginScope scope_kind = PluginScope::instance;
  std::string scope_id = {};
  std::string name_space = "default";
  std::string state_key = {};

  friend bool operator==(const PluginStateKey&, const PluginStateKey&) = default;
};

// An object that a plugin stores in order to find it again.
struct PluginEntity {
  EventId id;
  PluginId plugin_id;
  std::optional<CompanyId> company_id = {};  // of the creating call; none in instance scope
  std::string entity_type = {};
  PluginScope scope_kind = PluginScope::instance;
  std::optional<std::string> scope_id = {};
  std::optional<std::string> external_id = {};
  std::optional<std::string> title = {};
  std::optional<std::string> status = {};
  bj::object document = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(PluginEntity, (),
                      (id, plugin_id, company_id, entity_type, scope_kind, scope_id, external_id,
                       title, status, document, created_at, updated_at))

BOOST_DEFINE_ENUM_CLASS(PluginLogLevel, debug, info, warn, error, metric)

struct PluginLogLine {
  EventId id;
  PluginId plugin_id;
  std::optional<CompanyId> company_id = {};
  PluginLogLevel level = PluginLogLevel::info;
  std::string message = {};
  std::optional<bj::object> meta = {};
  Time created_at = {};
};
BOOST_DESCRIBE_STRUCT(PluginLogLine, (),
                      (id, plugin_id, company_id, level, message, meta, created_at))

}  // namespace berth::core
