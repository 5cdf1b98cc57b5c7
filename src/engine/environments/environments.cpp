#include "engine/environments/environments.hpp"

#include "base/json/peek.hpp"
#include "egress/policy.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/environments/allowed_places.hpp"
#include "engine/environments/checks.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/leases/sandbox_room.hpp"
#include "engine/listing.hpp"
#include "engine/secrets/environment_secrets.hpp"
#include "engine/templates/start_from.hpp"
#include "store/companies.hpp"
#include "store/places/leases.hpp"
#include "store/secrets.hpp"

namespace berth::engine {
namespace {

EnvironmentView to_view(core::Environment environment, const core::Caller& who) {
  if (core::sees_config(who)) return {std::move(environment), false, false};
  environment.config.clear();
  environment.env_vars.clear();
  environment.metadata.reset();
  return {std::move(environment), true, true};
}

std::vector<core::DeleteBlocked> reasons_against(const core::Environment& environment,
                                                 const store::EnvironmentUse& use) {
  using enum core::DeleteBlocked;
  std::vector<core::DeleteBlocked> out;
  if (environment.driver == core::DriverKind::local) out.push_back(managed_local);
  if (use.is_company_default) out.push_back(instance_default);
  if (use.pending_cleanup_leases > 0) out.push_back(pending_sandbox_cleanup);
  if (use.reusable_sandboxes > 0) out.push_back(reusable_sandbox_lease);
  return out;
}

Error delete_refused(const std::vector<core::DeleteBlocked>& reasons) {
  Error error{Errc::environment_delete_blocked,
              "Environment delete is currently blocked. Refresh the environment and retry.",
              "read its delete-blast-radius for what stands against it"};
  if (!reasons.empty()) {
    switch (reasons.front()) {
      case core::DeleteBlocked::managed_local:
        error.message = "Cannot delete the managed local environment.";
        error.remedy = "archive it: PATCH its status to archived";
        break;
      case core::DeleteBlocked::instance_default:
        error.message =
            "Cannot delete the current default environment of the company. Set a new default "
            "environment before deleting this one.";
        error.remedy = "PATCH the company's defaultEnvironmentId";
        break;
      case core::DeleteBlocked::pending_sandbox_cleanup:
        error.message =
            "Cannot delete this environment while a sandbox cleanup is pending. Wait for the "
            "cleanup sweep to destroy the orphan sandbox, then retry.";
        error.remedy = "list its leases with status pending_cleanup";
        break;
      case core::DeleteBlocked::reusable_sandbox_lease:
        error.message =
            "Cannot delete this environment while it has a reusable sandbox lease. Wait until its "
            "sandboxes are destroyed, then retry.";
        error.remedy =
            "destroy the leases that hold one; an idle sandbox goes when it expires, or with "
            "'berth sandbox rm'";
        break;
    }
  }
  for (const core::DeleteBlocked reason : reasons) {
    error.facts["deleteBlockedReasons"].emplace_back(name_of(reason));
  }
  return error;
}

bj::object update_details(const UpdateEnvironment& change, const core::Environment& after) {
  bj::object details = changed_fields(change);
  if (change.name.given) details["name"] = after.name;
  if (change.driver.given) details["driver"] = name_of(after.driver);
  if (change.status.given) details["status"] = name_of(after.status);
  if (change.description.given) details["descriptionChanged"] = true;
  if (change.config.given) {
    details["configChanged"] = true;
    details["configTopLevelKeyCount"] = after.config.size();
  }
  if (change.metadata.given) {
    details["metadataChanged"] = true;
    details["metadataTopLevelKeyCount"] = after.metadata ? after.metadata->size() : 0;
  }
  return details;
}

}  // namespace

Result<> Environments::check_provider(core::DriverKind driver, const bj::object& config) const {
  if (driver != core::DriverKind::sandbox) return {};
  const std::string key = core::provider_of(config);
  if (const auto rules = peek<bj::value>(config, "egress"); rules && key == "linux") {
    const Result<egress::Policy> policy = egress::Policy::decode(*rules);
    if (!policy) return std::unexpected(egress::in_config(policy.error()));
  }
  const auto known = catalog_.facts();
  if (std::ranges::any_of(known, [&](const auto& p) { return p.key == key && p.runs_work; })) {
    return {};
  }
  return fail(
      Errc::provider_unavailable,
      "Sandbox provider \"" + key + "\" is not installed or its plugin worker is not running.",
      "install its plugin, or choose a provider from the capabilities of the company");
}

Result<core::ConfigForStore> Environments::config_for(core::DriverKind driver,
                                                      const bj::object& source,
                                                      const std::optional<Judged>& judged) const {
  if (judged) return judged->config.clone();
  if (PluginConfigs::concerns(driver, source)) {
    return fail(Errc::conflict, "The environment changed while its config was judged",
                "repeat the change");
  }
  BERTH_TRY(core::ConfigForStore config, core::normalize_for_store(driver, source));
  BERTH_DO(check_provider(driver, config.config));
  return config;
}

Task<> Environments::check_place(core::DriverKind driver, bj::object source) const {
  // A missing driver or an invalid config is reported by the transaction.
  const Result<core::ConfigForStore> config = core::normalize_for_store(driver, source);
  if (!config || names_template(driver, config->config)) co_return Result<>{};
  const Result<places::Place*> place = places_.find(driver, config->config);
  if (!place) co_return Result<>{};
  co_return co_await (*place)->check_config(config->config);
}

Task<std::optional<Environments::Judged>> Environments::judge(const core::Call& call,
                                                              const core::CompanyId& company,
                                                              const CreateEnvironment& wanted) {
  const bj::object config = wanted.config.value_or(bj::object{});
  const bool is_for_plugin = PluginConfigs::concerns(wanted.driver, config);
  // For the other drivers the transaction can check everything itself.
  if (!is_for_plugin && wanted.driver != core::DriverKind::sandbox) co_return std::nullopt;
  // A caller who cannot see the company must learn nothing else.
  BERTH_CO_DO(co_await services_.store.read([&](store::Session& s) {
    return store::expect_company(s, core::Reach::of(call.who), company);
  }));
  if (!is_for_plugin) {
    BERTH_CO_DO(co_await check_place(wanted.driver, config));
    co_return std::nullopt;
  }
  BERTH_CO_TRY(core::ConfigForStore prepared, co_await plugins_.prepare(wanted.driver, config));
  co_return Judged{.config = std::move(prepared)};
}

Task<std::optional<Environments::Judged>> Environments::judge(const core::Call& call,
                                                              const core::EnvironmentId& id,
                                                              const UpdateEnvironment& change) {
  if (!change.config.given && !change.driver.value) co_return std::nullopt;
  BERTH_CO_TRY(const auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_environment(s, core::Reach::of(call.who), id);
  }));
  const core::DriverKind driver = change.driver.or_else(row.value.driver);
  if (!change.config.given && driver == row.value.driver) co_return std::nullopt;
  bj::object source = core::config_after_patch(row.value.driver, row.value.config,
                                               change.driver.value, change.config.value);
  if (!PluginConfigs::concerns(driver, source)) {
    BERTH_CO_DO(co_await check_place(driver, std::move(source)));
    co_return std::nullopt;
  }
  BERTH_CO_TRY(core::ConfigForStore prepared, co_await plugins_.prepare(driver, std::move(source)));
  co_return Judged{.config = std::move(prepared), .seen = row.version};
}

Task<core::Listing<EnvironmentView>> Environments::list(core::Call call, core::CompanyId company,
                                                        store::EnvironmentFilter filter,
                                                        core::PageRequest page) {
  using Rows = core::Page<core::Environment>;
  BERTH_CO_TRY(Rows rows, co_await services_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    return store::list_environments(s, company, filter, page);
  }));
  co_return to_listing(std::move(rows), [&](core::Environment environment) {
    return to_view(std::move(environment), call.who);
  });
}

Task<Capabilities> Environments::capabilities(core::Call call, core::CompanyId company) {
  BERTH_CO_DO(co_await services_.store.read([&](store::Session& s) {
    return store::expect_company(s, core::Reach::of(call.who), company);
  }));
  co_return catalog_.capabilities();
}

Task<core::Stored<EnvironmentView>> Environments::get(core::Call call, core::EnvironmentId id) {
  BERTH_CO_TRY(auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_environment(s, core::Reach::of(call.who), id);
  }));
  co_return core::Stored<EnvironmentView>{to_view(std::move(row.value), call.who), row.version};
}

Result<core::Stored<EnvironmentView>> Environments::insert(store::Session& session,
                                                           const core::Call& call,
                                                           const core::CompanyId& company,
                                                           const CreateEnvironment& wanted,
                                                           const std::optional<Judged>& judged) {
  BERTH_DO(store::expect_company(session, core::Reach::of(call.who), company));
  BERTH_TRY(auto config, config_for(wanted.driver, wanted.config.value_or(bj::object{}), judged));
  BERTH_DO(expect_allowed(session, services_, company,
                          openings_of(wanted.name, wanted.driver, config.config)));
  BERTH_DO(expect_template(session, company, wanted.driver, config.config));
  BERTH_DO(expect_in_bounds(session, company, wanted.driver, config.config));
  core::EnvVars vars;
  if (wanted.env_vars && !wanted.env_vars->empty()) {
    BERTH_TRY(const InstanceSettings settings, read_settings(session));
    BERTH_TRY(vars, core::normalize_env_vars(*wanted.env_vars, settings.plain_secrets()));
  }
  const Time now = services_.clock.now();
  core::Environment environment{.id = core::EnvironmentId::make(services_.random, now),
                                .company_id = company,
                                .name = wanted.name,
                                .description = wanted.description,
                                .driver = wanted.driver,
                                .status = wanted.status.value_or(core::EnvironmentStatus::active),
                                .config = {},
                                .env_vars = std::move(vars.canonical),
                                .metadata = wanted.metadata,
                                .created_at = now,
                                .updated_at = now};
  BERTH_DO(store_config_values(session, services_, call, environment, config));
  environment.config = config.config;
  BERTH_DO(store::insert_environment(session, environment));
  const std::string& id = environment.id.str();
  // A new environment has no old bindings, so an empty list need not replace any.
  if (!config.refs.empty()) {
    BERTH_DO(bind_refs(session, services_, company, core::SecretTarget::environment, id,
                       BindingPart::config, config.refs));
  }
  if (!vars.refs.empty()) {
    BERTH_DO(bind_refs(session, services_, company, core::SecretTarget::environment, id,
                       BindingPart::env_vars, vars.refs));
  }
  BERTH_DO(record(session, services_, call,
                  {company,
                   "environment.created",
                   "environment",
                   id,
                   {{"name", environment.name},
                    {"driver", name_of(environment.driver)},
                    {"status", name_of(environment.status)}}}));
  return core::Stored<EnvironmentView>{to_view(std::move(environment), call.who), 1};
}

Task<core::Stored<EnvironmentView>> Environments::create(core::Call call, core::CompanyId company,
                                                         CreateEnvironment wanted) {
  BERTH_CO_TRY(wanted.name, checked_name(wanted.name, "/name"));
  BERTH_CO_TRY(const auto judged, co_await judge(call, company, wanted));
  BERTH_CO_TRY(auto made, co_await idempotent_write(services_, call, [&](store::Session& s) {
                 return insert(s, call, company, wanted, judged);
               }));
  services_.feed.changed(company);
  services_.feed.environments_changed();
  co_return made;
}

Result<core::ConfigForStore> Environments::move_to(store::Session& session, const core::Call& call,
                                                   core::Environment& environment,
                                                   const UpdateEnvironment& change,
                                                   const std::optional<Judged>& judged) {
  BERTH_TRY(const auto use, store::environment_use(session, environment));
  if (use.pending_cleanup_leases > 0) {
    return fail(Errc::environment_pending_sandbox_cleanup,
                "Cannot change the driver or provider config while a sandbox cleanup is pending. "
                "Wait for the cleanup sweep to destroy the orphan sandbox, then retry.",
                "list its leases with status pending_cleanup");
  }
  const bj::object source = core::config_after_patch(environment.driver, environment.config,
                                                     change.driver.value, change.config.value);
  environment.driver = change.driver.or_else(environment.driver);
  BERTH_TRY(auto config, config_for(environment.driver, source, judged));
  BERTH_DO(expect_allowed(session, services_, environment.company_id,
                          openings_of(environment.name, environment.driver, config.config)));
  BERTH_DO(expect_template(session, environment.company_id, environment.driver, config.config));
  BERTH_DO(expect_in_bounds(session, environment.company_id, environment.driver, config.config));
  BERTH_DO(store_config_values(session, services_, call, environment, config));
  environment.config = config.config;
  return config;
}

Result<core::Stored<UpdatedEnvironment>> Environments::change(store::Session& session,
                                                              const core::Call& call,
                                                              const core::EnvironmentId& id,
                                                              const UpdateEnvironment& change,
                                                              const std::optional<Judged>& judged) {
  BERTH_TRY(auto row, store::find_environment(session, core::Reach::of(call.who), id));
  BERTH_DO(expect_version(call, row.version));
  if (judged && judged->seen != row.version) {
    return fail(Errc::conflict,
                "Environment " + row.value.name + " changed while its config was judged",
                "read it again and repeat the change");
  }
  core::Environment& environment = row.value;
  const core::CompanyId company = environment.company_id;
  const bool moves =
      change.config.given || (change.driver.value && *change.driver.value != environment.driver);
  environment.name = change.name.or_else(environment.name);
  environment.description = change.description.or_keep(environment.description);
  environment.status = change.status.or_else(environment.status);
  environment.metadata = change.metadata.or_keep(environment.metadata);
  environment.updated_at = services_.clock.now();

  std::optional<ImageFollows> image;
  std::optional<core::ConfigForStore> config;
  if (moves) {
    BERTH_TRY(image, ImageFollows::before(session, environment));
    BERTH_TRY(config, move_to(session, call, environment, change, judged));
  }
  std::optional<core::EnvVars> vars;
  if (change.env_vars.given) {
    BERTH_TRY(const InstanceSettings settings, read_settings(session));
    BERTH_TRY(vars, core::normalize_env_vars(change.env_vars.value.value_or(bj::object{}),
                                             settings.plain_secrets()));
    environment.env_vars = vars->canonical;
  }
  BERTH_DO(store::update_environment(session, row));
  if (config) {
    BERTH_DO(bind_refs(session, services_, company, core::SecretTarget::environment, id.str(),
                       BindingPart::config, config->refs));
  }
  if (vars) {
    BERTH_DO(bind_refs(session, services_, company, core::SecretTarget::environment, id.str(),
                       BindingPart::env_vars, vars->refs));
  }
  BERTH_DO(drop_unused_owned(session, services_, call, id));
  std::optional<core::ImageReconciliation> followed;
  if (image) {
    BERTH_TRY(followed, image->after(session, environment, environment.updated_at));
  }
  bj::object details = update_details(change, environment);
  if (followed) details["customImageReconciliation"] = name_of(followed->action);
  BERTH_DO(record(session, services_, call,
                  {company, "environment.updated", "environment", id.str(), std::move(details)}));
  return core::Stored<UpdatedEnvironment>{
      {to_view(std::move(environment), call.who), std::move(followed)}, row.version + 1};
}

Task<core::Stored<UpdatedEnvironment>> Environments::update(core::Call call, core::EnvironmentId id,
                                                            UpdateEnvironment change) {
  BERTH_CO_DO(not_null(change.name, "/name"));
  BERTH_CO_DO(not_null(change.driver, "/driver"));
  BERTH_CO_DO(not_null(change.status, "/status"));
  if (change.name.value) {
    BERTH_CO_TRY(change.name.value, checked_name(*change.name.value, "/name"));
  }
  BERTH_CO_TRY(const auto judged, co_await judge(call, id, change));
  BERTH_CO_TRY(auto row, co_await services_.store.write([&](store::Session& s) {
    return this->change(s, call, id, change, judged);
  }));
  services_.feed.changed(row.value.company_id);
  services_.feed.environments_changed();
  co_return row;
}

Task<EnvironmentView> Environments::remove(core::Call call, core::EnvironmentId id) {
  const auto work = [&](store::Session& s) -> Result<core::Environment> {
    BERTH_TRY(auto row, store::find_environment(s, core::Reach::of(call.who), id));
    BERTH_DO(expect_version(call, row.version));
    BERTH_TRY(const auto use, store::environment_use(s, row.value));
    const auto reasons = reasons_against(row.value, use);
    if (!reasons.empty()) return std::unexpected(delete_refused(reasons));
    BERTH_TRY(const bool deleted, store::delete_environment(s, id));
    if (!deleted) return std::unexpected(delete_refused({}));
    BERTH_DO(drop_unused_owned(s, services_, call, id));
    BERTH_DO(record(s, services_, call,
                    {row.value.company_id,
                     "environment.deleted",
                     "environment",
                     id.str(),
                     {{"name", row.value.name}, {"driver", name_of(row.value.driver)}}}));
    return std::move(row.value);
  };
  BERTH_CO_TRY(auto removed, co_await services_.store.write(work));
  services_.feed.changed(removed.company_id);
  services_.feed.environments_changed();
  co_return to_view(std::move(removed), call.who);
}

Task<BlastRadius> Environments::blast_radius(core::Call call, core::EnvironmentId id) {
  co_return co_await services_.store.read([&](store::Session& s) -> Result<BlastRadius> {
    BERTH_TRY(const auto row, store::find_environment(s, core::Reach::of(call.who), id));
    BERTH_TRY(const auto use, store::environment_use(s, row.value));
    const auto reasons = reasons_against(row.value, use);
    return BlastRadius{
        .environment_id = id,
        .can_delete = reasons.empty(),
        .delete_blocked_reasons = reasons,
        .pending_cleanup_lease_count = use.pending_cleanup_leases,
        .reusable_sandbox_lease_count = use.reusable_sandboxes,
        .static_references = {.is_managed_local = row.value.driver == core::DriverKind::local,
                              .is_instance_default = use.is_company_default,
                              .agent_default_count = use.agent_defaults,
                              .secret_binding_count = use.secret_bindings},
        .active_runtime_use = {.active_lease_count = use.live_leases,
                               .has_active_runtime_use = use.live_leases > 0}};
  });
}

Task<SecretRefs> Environments::secret_refs(core::Call call, core::EnvironmentId id) {
  co_return co_await services_.store.read([&](store::Session& s) -> Result<SecretRefs> {
    BERTH_TRY(const auto row, store::find_environment(s, core::Reach::of(call.who), id));
    BERTH_TRY(const auto company,
              store::find_company(s, core::Reach::everything(), row.value.company_id));
    BERTH_TRY(const auto bindings,
              store::bindings_of_target(s, core::SecretTarget::environment, id.str()));
    SecretRefs out;
    for (const core::SecretBinding& binding : bindings) {
      BERTH_TRY(const auto secret,
                store::find_secret(s, core::Reach::only(binding.company_id), binding.secret_id));
      out.refs.push_back({binding.config_path, binding.secret_id, secret.value.name,
                          secret.value.status, binding.company_id, company.value.name});
    }
    return out;
  });
}

Task<core::Listing<core::Lease>> Environments::leases(core::Call call, core::EnvironmentId id,
                                                      std::optional<core::LeaseState> status,
                                                      core::PageRequest page) {
  using Rows = core::Page<core::Lease>;
  BERTH_CO_TRY(Rows rows, co_await services_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::find_environment(s, core::Reach::of(call.who), id));
    return store::list_leases(s, id, status, page);
  }));
  co_return to_listing(std::move(rows));
}

Task<core::Lease> Environments::lease(core::Call call, core::LeaseId id) {
  BERTH_CO_TRY(auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_lease(s, core::Reach::of(call.who), id);
  }));
  co_return std::move(row.value);
}

}  // namespace berth::engine
