#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {

std::vector<Route> company_routes(engine::Engine& work) {
  using Company = engine::CompanyView;
  using core::Permission;
  engine::Companies& companies = work.companies;
  return {
      Endpoint<None, PageQuery, None, core::Listing<Company>>{
          .verb = Verb::get,
          .path = "/api/companies",
          .needs = Permission::signed_in,
          .tag = "companies",
          .says = "List the companies that the caller can see",
          .call =
              [&companies](core::Call call, auto in) {
                return with_page(in.query, [&companies, call](core::PageRequest page) {
                  return companies.list(call, std::move(page));
                });
              }},
      Endpoint<None, None, engine::CreateCompany, core::Stored<Company>>{
          .verb = Verb::post,
          .path = "/api/companies",
          .needs = Permission::instance_admin,
          .tag = "companies",
          .says = "Create a company together with its Local environment, and its Sandbox where the "
                  "server "
                  "makes sandboxes",
          .status = 201,
          .call = [&companies](core::Call call,
                               auto in) { return companies.create(call, std::move(in.body)); }},
      Endpoint<CompanyPath, None, None, core::Stored<Company>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}",
          .needs = Permission::company_read,
          .tag = "companies",
          .says = "Read a company",
          .call = [&companies](core::Call call,
                               auto in) { return companies.get(call, in.path.company); }},
      Endpoint<CompanyPath, None, engine::UpdateCompany, core::Stored<Company>>{
          .verb = Verb::patch,
          .path = "/api/companies/{company}",
          .needs = Permission::company_admin,
          .tag = "companies",
          .says = "Change a company or its default environment",
          .call =
              [&companies](core::Call call, auto in) {
                return companies.update(call, in.path.company, std::move(in.body));
              }},
      Endpoint<CompanyPath, None, engine::UpdateAllowances, core::Stored<Company>>{
          .verb = Verb::patch,
          .path = "/api/companies/{company}/allowances",
          .needs = Permission::instance_admin,
          .tag = "companies",
          .says =
              "Allow or forbid a company what reaches the server's machine without a wall; null "
              "is what the server's mode says",
          .call =
              [&companies](core::Call call, auto in) {
                return companies.allow(call, in.path.company, std::move(in.body));
              }},
      Endpoint<CompanyPath, None, None, Company>{
          .verb = Verb::delete_,
          .path = "/api/companies/{company}",
          .needs = Permission::instance_admin,
          .tag = "companies",
          .says = "Delete a company with everything that belongs to it",
          .call = [&companies](core::Call call,
                               auto in) { return companies.remove(call, in.path.company); }},
  };
}

}  // namespace berth::http
