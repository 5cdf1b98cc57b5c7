#pragma once

#include "core/call.hpp"
#include "core/config/bindings.hpp"
#include "core/page.hpp"
#include "core/rows/plugin.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/plugins/plugin_packages.hpp"
#include "engine/plugins/plugin_services.hpp"
#include "engine/services.hpp"
#include "places/remote/remote_place.hpp"
#include "store/plugins.hpp"

#include <set>

namespace berth::engine {

// The parts of this server that plugins need. Referenced objects outlive the engine.
struct PluginPlace {
  plugins::Host& host;
  PluginServices& services;
  PluginPackages& packages;
  places::remote::RemotePlace& sandboxes;  // for driver `sandbox`
  places::remote::RemotePlace& drivers;    // for driver `plugin`
};

// A wall that a worker's box lacks, and how to get it.
struct MissingWall {
  std::string feature;
  std::string reason;
  std::string remedy;
};
BOOST_DESCRIBE_STRUCT(MissingWall, (), (feature, reason, remedy))

// How strong the newest worker's box is. docs/plugins.md#the-box.
struct PluginIsolation {
  std::string level;  // strong, weak or none
  std::vector<std::string> features;
  std::vector<MissingWall> missing;
};
BOOST_DESCRIBE_STRUCT(PluginIsolation, (), (level, features, missing))

// A plugin as the API shows it.
struct PluginView {
  core::PluginId id;
  std::string plugin_key;
  std::string package_name;
  core::PluginSource source;
  std::string version;
  std::int64_t api_version;
  std::vector<std::string> categories;
  bj::object manifest_json;
  core::PluginState status;
  std::int64_t install_order;
  std::optional<std::string> package_path;
  std::optional<std::string> last_error;
  std::optional<core::PendingUpgrade> pending_upgrade;
  bool supports_config_test;
  std::optional<std::string> isolation;  // of the newest worker: strong, weak or none
  std::optional<PluginIsolation> box;
  std::optional<core::PluginEgress> egress;
  Time installed_at;
  Time updated_at;
};
BOOST_DESCRIBE_STRUCT(PluginView, (),
                      (id, plugin_key, package_name, source, version, api_version, categories,
                       manifest_json, status, install_order, package_path, last_error,
                       pending_upgrade, supports_config_test, isolation, box, egress, installed_at,
                       updated_at))

struct InstallPlugin {
  std::string package_name;
  std::optional<std::string> version;
  std::optional<bool> is_local_path;
};
BOOST_DESCRIBE_STRUCT(InstallPlugin, (), (package_name, version, is_local_path))

struct PluginEgressRequest {
  std::vector<std::string> allow;  // rules as in an environment's egress policy
};
BOOST_DESCRIBE_STRUCT(PluginEgressRequest, (), (allow))

// What a plugin may reach besides the public internet, and what it has requested.
struct PluginEgressLog {
  std::vector<std::string> allow;
  std::vector<bj::object> entries;  // oldest first; never a query, a header or a body
};
BOOST_DESCRIBE_STRUCT(PluginEgressLog, (), (allow, entries))

struct DisablePlugin {
  std::optional<std::string> reason;
};
BOOST_DESCRIBE_STRUCT(DisablePlugin, (), (reason))

struct UpgradePlugin {
  std::optional<std::string> version;
  std::optional<bool> accept_capabilities;  // the new version's additional capabilities
};
BOOST_DESCRIBE_STRUCT(UpgradePlugin, (), (version, accept_capabilities))

// The extent of an uninstallation.
struct UninstallRequest {
  bool purge = false;  // delete everything it keeps, instead of remembering its id
  bool force = false;  // even if it holds sandboxes: those wait for its return
};

struct HealthCheck {
  std::string name;
  bool passed = false;
  std::optional<std::string> message = {};
};
BOOST_DESCRIBE_STRUCT(HealthCheck, (), (name, passed, message))

struct WorkerView {
  plugins::WorkerState status = plugins::WorkerState::stopped;
  std::optional<std::int64_t> pid = {};
  std::int64_t consecutive_crashes = 0;
  std::optional<Time> running_since = {};
  std::vector<std::string> methods = {};
};
BOOST_DESCRIBE_STRUCT(WorkerView, (), (status, pid, consecutive_crashes, running_since, methods))

struct PluginHealth {
  core::PluginId plugin_id;
  core::PluginState status = core::PluginState::installed;
  bool healthy = false;
  std::vector<HealthCheck> checks = {};
  std::optional<std::string> last_error = {};
  std::optional<WorkerView> worker = {};
  std::int64_t sandboxes = 0;  // that it holds
};
BOOST_DESCRIBE_STRUCT(PluginHealth, (),
                      (plugin_id, status, healthy, checks, last_error, worker, sandboxes))

struct PluginConfigRequest {
  core::CompanyId company_id;
  bj::object config_json;
};
BOOST_DESCRIBE_STRUCT(PluginConfigRequest, (), (company_id, config_json))

struct ConfigTest {
  bool valid = false;
  std::optional<bool> supported = {};
  std::optional<std::string> message = {};
};
BOOST_DESCRIBE_STRUCT(ConfigTest, (), (valid, supported, message))

// Plugins of this instance: installed, started, upgraded and removed. The row records the intent
// before an action and the result after it; a plugin is `ready` only while its worker runs. A name
// is an id or a key.
class Plugins {
 public:
  // Without a place, this server has no plugins and every method reports that.
  Plugins(Services& services, Catalog& catalog, PluginPlace* place, core::NodeId node,
          std::set<core::NodeId> former);

  // Removes what a crash left half done, and starts all enabled plugins. A plugin that does not
  // start affects neither the others nor the server.
  Task<> start_all();
  // Waits until all worker reports are in the store.
  Task<> stop();

  Task<PluginView> install(core::Call call, InstallPlugin wanted);
  Task<std::vector<PluginView>> list(core::Call call, std::optional<core::PluginState> status);
  Task<PluginView> get(core::Call call, std::string name);
  // From disabled, from error, and from a pending upgrade, which is then accepted.
  Task<PluginView> enable(core::Call call, std::string name);
  Task<PluginView> disable(core::Call call, std::string name, DisablePlugin wanted);
  // Replaces the running worker. A plugin that was stopped by hand remains stopped.
  Task<PluginView> restart(core::Call call, std::string name);
  // plugin_review_needed, listing the additional capabilities, until they are accepted; the
  // previous version serves meanwhile.
  Task<PluginView> upgrade(core::Call call, std::string name, UpgradePlugin wanted);
  // Sets what its worker may reach besides the public internet, effective now.
  Task<PluginView> set_egress(core::Call call, std::string name, PluginEgressRequest wanted);
  // The newest egress decisions for its workers since this server started.
  Task<PluginEgressLog> egress(core::Call call, std::string name, std::int64_t limit);
  // plugin_in_use while it holds sandboxes, unless forced.
  Task<PluginView> uninstall(core::Call call, std::string name, UninstallRequest request);

  Task<std::optional<core::PluginConfigRow>> config(core::Call call, std::string name,
                                                    core::CompanyId company);
  // Validated by the plugin's schema; secrets are references, bound to the plugin.
  Task<core::PluginConfigRow> set_config(core::Call call, std::string name,
                                         PluginConfigRequest wanted);
  Task<ConfigTest> test_config(core::Call call, std::string name, PluginConfigRequest wanted);

  Task<std::vector<core::PluginLogLine>> logs(core::Call call, std::string name,
                                              store::PluginLogFilter filter, std::int64_t limit);
  Task<PluginHealth> health(core::Call call, std::string name);

 private:
  using Row = core::Stored<core::Plugin>;
  // Locks a plugin for one change at a time.
  class [[nodiscard]] Turn {
   public:
    Turn(std::set<std::string>& busy, std::string key) : busy_(&busy), key_(std::move(key)) {}
    Turn(Turn&& other) noexcept
        : busy_(std::exchange(other.busy_, nullptr)), key_(std::move(other.key_)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (busy_ != nullptr) busy_->erase(key_);
    }

   private:
    std::set<std::string>* busy_;
    std::string key_;
  };

  Result<PluginPlace*> place() const;
  Task<Row> find(std::string name);
  // Instance administrators see the last error as is; others see a generic sentence.
  static std::optional<std::string> shown_error(const core::Caller& who,
                                                const core::Plugin& plugin);
  PluginView view(const core::Caller& who, const core::Plugin& plugin) const;
  Result<Turn> take_turn(const std::string& key);
  // With an Idempotency-Key: the plugin that the same request was about before, in its current
  // state. Stored with the intent, so that a retry after a crash does nothing twice.
  Task<std::optional<PluginView>> answered(const core::Call& call);
  Result<> keep_once(store::Session& session, const core::Call& call, const core::PluginId& id);

  Task<FetchedPackage> fetch(PackageRequest request, std::optional<std::string> folder_id);
  Task<> discard(std::string folder_id);
  Task<Row> record_installed(const core::Call& call, PackageRequest request, FetchedPackage fetched,
                             std::optional<std::string> folder_id);
  // Starts the worker; the row is `ready` or `error` afterwards.
  Task<Row> activate(core::PluginId id);
  Task<Row> apply_upgrade(Row row, core::PendingUpgrade next);
  Task<> sweep_folders();
  void refresh_catalog();
  Task<> note(const core::Call& call, const core::PluginId& id, std::string what);
  Result<bj::object> checked_config(const core::Plugin& plugin, const bj::object& config,
                                    std::vector<core::BoundRef>& refs) const;

  Services& services_;
  Catalog& catalog_;
  PluginPlace* place_;
  core::NodeId node_;
  std::set<core::NodeId> former_;
  std::set<std::string> busy_;  // keys of plugins being changed
};

}  // namespace berth::engine
