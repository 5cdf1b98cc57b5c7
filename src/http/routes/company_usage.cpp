#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {

std::vector<Route> company_usage_routes(engine::Engine& work) {
  using core::Permission;
  using engine::CompanyUsage;
  engine::Quotas& quotas = work.guards.quotas;
  return {
      Endpoint<CompanyPath, None, None, CompanyUsage>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/usage",
          .needs = Permission::company_read,
          .tag = "companies",
          .says = "Read what a company stores and runs, beside its quota; null is without a limit",
          .call = [&quotas](core::Call call,
                            auto in) { return quotas.usage(call, in.path.company); }},
      Endpoint<CompanyPath, None, engine::UpdateQuota, CompanyUsage>{
          .verb = Verb::patch,
          .path = "/api/companies/{company}/quota",
          .needs = Permission::instance_admin,
          .tag = "companies",
          .says = "Change the quota of a company; null follows the instance, 0 is without a limit",
          .call =
              [&quotas](core::Call call, auto in) {
                return quotas.update(call, in.path.company, std::move(in.body));
              }},
  };
}

}  // namespace berth::http
