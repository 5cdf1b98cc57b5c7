#pragma once

#include "core/call.hpp"
#include "core/config/environment_config.hpp"
#include "core/page.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/lease.hpp"
#include "core/template_drift.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/plugins/plugin_configs.hpp"
#include "engine/services.hpp"
#include "places/registry.hpp"
#include "store/places/environments.hpp"

namespace berth::engine {

using store::EnvironmentFilter;

struct CreateEnvironment {
  std::string name;
  std::optional<std::string> description;
  core::DriverKind driver;
  std::optional<core::EnvironmentStatus> status;
  std::optional<bj::object> config;
  std::optional<bj::object> env_vars;
  std::optional<bj::object> metadata;
};
BOOST_DESCRIBE_STRUCT(CreateEnvironment, (),
                      (name, description, driver, status, config, env_vars, metadata))

struct UpdateEnvironment {
  Patch<std::string> name;
  Patch<std::string> description;
  Patch<core::DriverKind> driver;
  Patch<core::EnvironmentStatus> status;
  Patch<bj::object> config;
  Patch<bj::object> env_vars;
  Patch<bj::object> metadata;
};
BOOST_DESCRIBE_STRUCT(UpdateEnvironment, (),
                      (name, description, driver, status, config, env_vars, metadata))

// An environment as a caller sees it: without config, variables and metadata for viewers.
struct EnvironmentView : core::Environment {
  bool config_redacted = false;
  bool metadata_redacted = false;
};
BOOST_DESCRIBE_STRUCT(EnvironmentView, (core::Environment), (config_redacted, metadata_redacted))

struct UpdatedEnvironment : EnvironmentView {
  // Set if the edit changed whether sandboxes start from the active template, or relinked that
  // template to the new config.
  std::optional<core::ImageReconciliation> custom_image_reconciliation = {};
};
BOOST_DESCRIBE_STRUCT(UpdatedEnvironment, (EnvironmentView), (custom_image_reconciliation))

struct SecretRefView {
  std::string config_path;
  core::SecretId secret_id;
  std::string name;
  core::SecretStatus status;
  core::CompanyId company_id;
  std::string company_name;
};
BOOST_DESCRIBE_STRUCT(SecretRefView, (),
                      (config_path, secret_id, name, status, company_id, company_name))

struct SecretRefs {
  std::vector<SecretRefView> refs;
};
BOOST_DESCRIBE_STRUCT(SecretRefs, (), (refs))

struct StaticReferences {
  bool is_managed_local = false;
  bool is_instance_default =
      false;  // the wire's name; means the default of the environment's company
  std::int64_t agent_default_count = 0;
  std::int64_t execution_workspace_selection_count = 0;
  std::int64_t issue_selection_count = 0;
  std::int64_t project_selection_count = 0;
  std::int64_t secret_binding_count = 0;
};
BOOST_DESCRIBE_STRUCT(StaticReferences, (),
                      (is_managed_local, is_instance_default, agent_default_count,
                       execution_workspace_selection_count, issue_selection_count,
                       project_selection_count, secret_binding_count))

struct RuntimeUse {
  std::int64_t active_lease_count = 0;
  std::int64_t active_custom_image_setup_session_count = 0;
  bool has_active_runtime_use = false;
};
BOOST_DESCRIBE_STRUCT(RuntimeUse, (),
                      (active_lease_count, active_custom_image_setup_session_count,
                       has_active_runtime_use))

// What deleting an environment would break, and what prevents it.
struct BlastRadius {
  core::EnvironmentId environment_id;
  bool can_delete = false;
  std::vector<core::DeleteBlocked> delete_blocked_reasons;
  std::int64_t pending_cleanup_lease_count = 0;
  std::int64_t reusable_sandbox_lease_count = 0;
  StaticReferences static_references;
  RuntimeUse active_runtime_use;
};
BOOST_DESCRIBE_STRUCT(BlastRadius, (),
                      (environment_id, can_delete, delete_blocked_reasons,
                       pending_cleanup_lease_count, reusable_sandbox_lease_count, static_references,
                       active_runtime_use))

// The result of an environment's last test.
struct LastTest {
  bool ok = false;
  std::string summary;
  Time at;
  // What the provider then reported about the isolation between the work and its machine.
  std::optional<bj::object> isolation = {};
};
BOOST_DESCRIBE_STRUCT(LastTest, (), (ok, summary, at, isolation))

// An environment with what operators look for first: whether it works, and what uses it.
struct EnvironmentOverview {
  EnvironmentView environment;
  bool is_company_default = false;
  std::int64_t live_lease_count = 0;
  std::int64_t pending_cleanup_lease_count = 0;
  std::int64_t agent_default_count = 0;
  std::optional<LastTest> last_test;
};
BOOST_DESCRIBE_STRUCT(EnvironmentOverview, (),
                      (environment, is_company_default, live_lease_count,
                       pending_cleanup_lease_count, agent_default_count, last_test))

class Environments {
 public:
  Environments(Services& services, const Catalog& catalog, const PluginConfigs& plugins,
               const places::Registry& places)
      : services_(services), catalog_(catalog), plugins_(plugins), places_(places) {}

  Task<core::Listing<EnvironmentView>> list(core::Call call, core::CompanyId company,
                                            EnvironmentFilter filter, core::PageRequest page);
  // Those of a company that a page shows, most recently changed first.
  Task<std::vector<EnvironmentOverview>> overview(core::Call call, core::CompanyId company);
  Task<Capabilities> capabilities(core::Call call, core::CompanyId company);
  Task<core::Stored<EnvironmentView>> get(core::Call call, core::EnvironmentId id);
  // The environment, its new secrets, its bindings and the activity entry are one transaction.
  Task<core::Stored<EnvironmentView>> create(core::Call call, core::CompanyId company,
                                             CreateEnvironment wanted);
  Task<core::Stored<UpdatedEnvironment>> update(core::Call call, core::EnvironmentId id,
                                                UpdateEnvironment change);
  Task<EnvironmentView> remove(core::Call call, core::EnvironmentId id);
  Task<BlastRadius> blast_radius(core::Call call, core::EnvironmentId id);
  Task<SecretRefs> secret_refs(core::Call call, core::EnvironmentId id);
  Task<core::Listing<core::Lease>> leases(core::Call call, core::EnvironmentId id,
                                          std::optional<core::LeaseState> status,
                                          core::PageRequest page);
  Task<core::Lease> lease(core::Call call, core::LeaseId id);

 private:
  // A config that a plugin has validated, and the row version that it was validated for.
  struct Judged {
    core::ConfigForStore config;
    std::int64_t seen = 0;
  };
  Result<core::Stored<EnvironmentView>> insert(store::Session& session, const core::Call& call,
                                               const core::CompanyId& company,
                                               const CreateEnvironment& wanted,
                                               const std::optional<Judged>& judged);
  Result<core::Stored<UpdatedEnvironment>> change(store::Session& session, const core::Call& call,
                                                  const core::EnvironmentId& id,
                                                  const UpdateEnvironment& change,
                                                  const std::optional<Judged>& judged);
  // The driver and config of the environment after the change.
  Result<core::ConfigForStore> move_to(store::Session& session, const core::Call& call,
                                       core::Environment& environment,
                                       const UpdateEnvironment& change,
                                       const std::optional<Judged>& judged);
  // Empty when no plugin is involved. Runs before the transaction, because neither a worker nor a
  // disk can be queried inside one.
  Task<std::optional<Judged>> judge(const core::Call& call, const core::CompanyId& company,
                                    const CreateEnvironment& wanted);
  Task<std::optional<Judged>> judge(const core::Call& call, const core::EnvironmentId& id,
                                    const UpdateEnvironment& change);
  Result<core::ConfigForStore> config_for(core::DriverKind driver, const bj::object& source,
                                          const std::optional<Judged>& judged) const;
  Result<> check_provider(core::DriverKind driver, const bj::object& config) const;
  // Checks that what the config names exists, so that a mistake is reported to its author and not
  // by the first run.
  Task<> check_place(core::DriverKind driver, bj::object source) const;

  Services& services_;
  const Catalog& catalog_;
  const PluginConfigs& plugins_;
  const places::Registry& places_;
};

}  // namespace berth::engine
