#include "engine/environments/environments.hpp"
#include "api/in_company.hpp"
#include "api/tables.hpp"
#include "engine/leases/leases.hpp"

namespace berth::api {
namespace {

struct EnvironmentOptions {
  std::optional<core::EnvironmentStatus> status;
  std::optional<core::DriverKind> driver;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(EnvironmentOptions, (), (status, driver, limit, after))

Task<core::Listing<engine::EnvironmentView>> list_environments(engine::Environments& environments,
                                                               core::Call call,
                                                               core::CompanyId company,
                                                               EnvironmentOptions options) {
  BERTH_CO_TRY(core::PageRequest page, page_of(options));
  const engine::EnvironmentFilter filter{options.driver, options.status};
  co_return co_await environments.list(std::move(call), std::move(company), filter,
                                       std::move(page));
}

struct EnvironmentLeaseOptions {
  std::optional<core::CompanyId> company_id;
  std::optional<core::LeaseState> status;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(EnvironmentLeaseOptions, (), (company_id, status, limit, after))

Task<core::Listing<core::Lease>> list_environment_leases(engine::Environments& environments,
                                                         core::Call call, core::EnvironmentId id,
                                                         EnvironmentLeaseOptions options) {
  BERTH_CO_DO(co_await expect_company(environments, call, id, options.company_id));
  BERTH_CO_TRY(core::PageRequest page, page_of(options));
  co_return co_await environments.leases(std::move(call), std::move(id), options.status,
                                         std::move(page));
}

}  // namespace

std::vector<Entry> environment_operations(engine::Environments& environments,
                                          engine::Leases& leases) {
  using core::Permission;
  using engine::Environments;
  using engine::Leases;
  return {
      Operation{.name = "environment.list",
                .needs = Permission::company_read,
                .says = "List the environments of a company, most recently changed first",
                .call = use(environments, list_environments)},
      Operation{.name = "environment.create",
                .needs = Permission::company_operate,
                .says = "Create an environment; secrets in its config are sealed and bound with it",
                .call = use(environments, &Environments::create)},
      Operation{.name = "environment.overview",
                .needs = Permission::company_read,
                .says = "List up to 1000 environments with their last test, their leases and their "
                        "users",
                .call = use(environments, &Environments::overview)},
      Operation{.name = "environment.capabilities",
                .needs = Permission::company_read,
                .says = "Say which adapters, drivers and sandbox providers this server supports",
                .call = use(environments, &Environments::capabilities)},
      Operation{.name = "environment.get",
                .needs = Permission::company_read,
                .says = "Read an environment",
                .call = use_in_company(environments, environments, &Environments::get)},
      Operation{.name = "environment.update",
                .needs = Permission::company_operate,
                .says = "Change an environment; with If-Match only the version that was read",
                .call = use_in_company(environments, environments, &Environments::update)},
      Operation{.name = "environment.delete",
                .needs = Permission::company_operate,
                .says = "Delete an environment that nothing blocks; answers what was removed",
                .call = use_in_company(environments, environments, &Environments::remove)},
      Operation{.name = "environment.blast_radius",
                .needs = Permission::company_operate,
                .says = "Say what deleting an environment would break and what forbids it",
                .call = use_in_company(environments, environments, &Environments::blast_radius)},
      Operation{.name = "environment.secret_refs",
                .needs = Permission::company_operate,
                .says = "List the secrets that an environment names, without their values",
                .call = use_in_company(environments, environments, &Environments::secret_refs)},
      Operation{.name = "environment.leases",
                .needs = Permission::company_operate,
                .says = "List the leases of an environment, most recently used first",
                .call = use(environments, list_environment_leases)},
      Operation{.name = "environment.probe",
                .needs = Permission::company_operate,
                .says = "Try an environment with a lease of its own; each step with its time",
                .call = use_in_company(environments, leases, &Leases::test)},
      Operation{.name = "environment.probe_draft",
                .needs = Permission::company_operate,
                .says = "Try an environment that is not saved; nothing of it is stored",
                .call = use(leases, &Leases::probe_draft)},
  };
}

}  // namespace berth::api
