#include "engine/accounts/companies.hpp"
#include "api/tables.hpp"
#include "api/use.hpp"
#include "engine/accounts/quotas.hpp"

namespace berth::api {

std::vector<Entry> company_operations(engine::Companies& companies, engine::Quotas& quotas) {
  using core::Permission;
  using engine::Companies;
  using engine::Quotas;
  return {
      Operation{.name = "company.list",
                .needs = Permission::signed_in,
                .says = "List the companies that the caller can see",
                .call = use(companies, &Companies::list)},
      Operation{.name = "company.create",
                .needs = Permission::instance_admin,
                .says = "Create a company together with its Local environment, and its Sandbox "
                        "where the server makes sandboxes",
                .call = use(companies, &Companies::create)},
      Operation{.name = "company.get",
                .needs = Permission::company_read,
                .says = "Read a company",
                .call = use(companies, &Companies::get)},
      Operation{.name = "company.update",
                .needs = Permission::company_admin,
                .says = "Change a company or its default environment",
                .call = use(companies, &Companies::update)},
      Operation{.name = "company.allow",
                .needs = Permission::instance_admin,
                .says = "Allow or forbid a company what reaches the server's machine without a "
                        "wall; null is what the server's mode says",
                .call = use(companies, &Companies::allow)},
      Operation{.name = "company.delete",
                .needs = Permission::instance_admin,
                .says = "Delete a company with everything that belongs to it",
                .call = use(companies, &Companies::remove)},
      Operation{.name = "company.usage",
                .needs = Permission::company_read,
                .says = "Read what a company stores and runs, beside its quota; null is without a "
                        "limit",
                .call = use(quotas, &Quotas::usage)},
      Operation{.name = "company.set_quota",
                .needs = Permission::instance_admin,
                .says = "Change the quota of a company; null follows the instance, 0 is without a "
                        "limit",
                .call = use(quotas, &Quotas::update)},
  };
}

}  // namespace berth::api
