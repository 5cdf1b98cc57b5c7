#include "engine/accounts/companies.hpp"

#include "core/config/linux_config.hpp"
#include "core/rows/environment.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/environments/allowed_places.hpp"
#include "engine/environments/checks.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/listing.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"

namespace berth::engine {
namespace {

core::Environment local_environment(const Services& services, const core::CompanyId& company) {
  const Time now = services.clock.now();
  return {
      .id = core::EnvironmentId::make(services.random, now),
      .company_id = company,
      .name = std::string{core::local_environment_name},
      .description = "This machine itself: commands run as the server's user, without a sandbox.",
      .driver = core::DriverKind::local,
      .status = core::EnvironmentStatus::active,
      .config = {},
      .env_vars = {},
      .metadata = bj::object{{"managedByBerth", true}},
      .created_at = now,
      .updated_at = now};
}

core::Environment sandbox_environment(const Services& services, const core::CompanyId& company) {
  core::Environment environment = local_environment(services, company);
  environment.name = core::sandbox_environment_name;
  environment.description = "Runs on this machine, each run in a sandbox of its own.";
  environment.driver = core::DriverKind::sandbox;
  environment.config = {
      {"provider", core::linux_provider}, {"image", "host"}, {"reuseLease", false}};
  return environment;
}

}  // namespace

CompanyView Companies::to_view(core::Company company) const {
  std::vector<core::Allowance> allowed = allowed_to(services_, company).names();
  return {std::move(company), std::move(allowed)};
}

core::Stored<CompanyView> Companies::to_view(core::Stored<core::Company> row) const {
  return {to_view(std::move(row.value)), row.version};
}

Task<core::Listing<CompanyView>> Companies::list(core::Call call, core::PageRequest page) {
  BERTH_CO_TRY(auto rows, co_await services_.store.read([&](store::Session& s) {
    return store::list_companies(s, core::Reach::of(call.who), page);
  }));
  co_return to_listing(std::move(rows),
                       [this](core::Company company) { return to_view(std::move(company)); });
}

Task<core::Stored<CompanyView>> Companies::get(core::Call call, core::CompanyId id) {
  BERTH_CO_TRY(auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_company(s, core::Reach::of(call.who), id);
  }));
  co_return to_view(std::move(row));
}

Result<core::Stored<core::Company>> Companies::insert(store::Session& session,
                                                      const core::Call& call,
                                                      const CreateCompany& wanted) {
  const Time now = services_.clock.now();
  core::Company company{.id = core::CompanyId::make(services_.random, now),
                        .name = wanted.name,
                        .description = wanted.description,
                        .status = core::CompanyStatus::active,
                        .default_environment_id = std::nullopt,
                        .allowances = {},
                        .kept_allowances = {},
                        .created_at = now,
                        .updated_at = now};
  BERTH_DO(store::insert_company(session, company));
  BERTH_DO(store::insert_environment(session, local_environment(services_, company.id)));
  if (catalog_.makes_sandboxes()) {
    const core::Environment sandbox = sandbox_environment(services_, company.id);
    BERTH_DO(store::insert_environment(session, sandbox));
    company.default_environment_id = sandbox.id;
    BERTH_DO(store::set_first_default(session, company));
  }
  BERTH_DO(record(
      session, services_, call,
      {company.id, "company.created", "company", company.id.str(), {{"name", company.name}}}));
  return core::Stored<core::Company>{std::move(company), 1};
}

Task<core::Stored<CompanyView>> Companies::create(core::Call call, CreateCompany wanted) {
  BERTH_CO_TRY(wanted.name, checked_name(wanted.name, "/name"));
  BERTH_CO_TRY(auto made, co_await idempotent_write(services_, call, [&](store::Session& s) {
                 return insert(s, call, wanted);
               }));
  co_return to_view(std::move(made));
}

Task<core::Stored<CompanyView>> Companies::update(core::Call call, core::CompanyId id,
                                                  UpdateCompany change) {
  BERTH_CO_DO(not_null(change.name, "/name"));
  BERTH_CO_DO(not_null(change.status, "/status"));
  if (change.name.value) {
    BERTH_CO_TRY(change.name.value, checked_name(*change.name.value, "/name"));
  }
  const std::vector<core::ProviderFacts> providers = catalog_.facts();
  const auto work = [&](store::Session& s) -> Result<core::Stored<core::Company>> {
    BERTH_TRY(auto row, store::find_company(s, core::Reach::of(call.who), id));
    BERTH_DO(expect_version(call, row.version));
    core::Company& company = row.value;
    if (const auto& request = change.default_environment_id.value) {
      BERTH_DO(check_default_environment(
          s, services_, id, *request,
          {core::DriverKind::local, core::DriverKind::ssh, core::DriverKind::sandbox}, providers));
    }
    company.name = change.name.or_else(company.name);
    company.description = change.description.or_keep(company.description);
    company.status = change.status.or_else(company.status);
    company.default_environment_id =
        change.default_environment_id.or_keep(company.default_environment_id);
    company.updated_at = services_.clock.now();
    BERTH_DO(store::update_company(s, row));
    BERTH_DO(record(s, services_, call,
                    {id, "company.updated", "company", id.str(), changed_fields(change)}));
    ++row.version;
    return row;
  };
  BERTH_CO_TRY(auto row, co_await services_.store.write(work));
  services_.feed.changed(id);
  co_return to_view(std::move(row));
}

Task<core::Stored<CompanyView>> Companies::allow(core::Call call, core::CompanyId id,
                                                 UpdateAllowances change) {
  BERTH_CO_DO(core::authorize(call.who, core::Permission::instance_admin));
  const auto work = [&](store::Session& s) -> Result<core::Stored<core::Company>> {
    BERTH_TRY(auto row, store::find_company(s, core::Reach::of(call.who), id));
    BERTH_DO(expect_version(call, row.version));
    core::Company& company = row.value;
    // An explicit decision replaces an allowance kept from before.
    const auto decide = [&](const Patch<bool>& request, core::Allowance which,
                            std::optional<bool>& decision) {
      if (!request.given) return;
      decision = request.value;
      std::erase(company.kept_allowances, which);
    };
    decide(change.local, core::Allowance::local, company.allowances.local);
    decide(change.host_network, core::Allowance::host_network, company.allowances.host_network);
    decide(change.private_egress, core::Allowance::private_egress,
           company.allowances.private_egress);
    decide(change.private_ssh, core::Allowance::private_ssh, company.allowances.private_ssh);
    decide(change.weak_sandbox, core::Allowance::weak_sandbox, company.allowances.weak_sandbox);
    company.updated_at = services_.clock.now();
    BERTH_DO(store::update_company(s, row));
    BERTH_DO(record(s, services_, call,
                    {id, "company.allowances_changed", "company", id.str(),
                     encode(company.allowances).as_object()}));
    ++row.version;
    return row;
  };
  BERTH_CO_TRY(auto row, co_await services_.store.write(work));
  services_.feed.changed(id);
  co_return to_view(std::move(row));
}

Task<CompanyView> Companies::remove(core::Call call, core::CompanyId id) {
  const auto work = [&](store::Session& s) -> Result<core::Company> {
    BERTH_TRY(auto row, store::find_company(s, core::Reach::of(call.who), id));
    BERTH_DO(store::delete_company(s, id));
    return std::move(row.value);
  };
  BERTH_CO_TRY(core::Company removed, co_await services_.store.write(work));
  services_.feed.environments_changed();  // its own were deleted
  co_return to_view(std::move(removed));
}

Task<> Companies::ensure_one() {
  co_return co_await services_.store.write([&](store::Session& s) -> Result<> {
    BERTH_TRY(const std::int64_t count, store::count_companies(s));
    if (count > 0) return {};
    BERTH_DO(save_first_settings(s, services_.clock.now()));
    const core::Call system{.who = {.kind = core::CallerKind::local_operator}};
    BERTH_DO(insert(s, system, {.name = "Default", .description = std::nullopt}));
    return {};
  });
}

}  // namespace berth::engine
