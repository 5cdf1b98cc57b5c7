#include "http/routes/in_company.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {
namespace {

struct EnvironmentQuery {
  std::optional<core::EnvironmentStatus> status;
  std::optional<core::DriverKind> driver;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(EnvironmentQuery, (), (status, driver, limit, after))

std::vector<Route> company_environment_routes(engine::Environments& environments) {
  using core::Permission;
  using engine::EnvironmentView;
  return {
      Endpoint<CompanyPath, EnvironmentQuery, None, core::Listing<EnvironmentView>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/environments",
          .needs = Permission::company_read,
          .tag = "environments",
          .says = "List the environments of a company, most recently changed first",
          .call =
              [&environments](core::Call call, auto in) {
                const engine::EnvironmentFilter filter{in.query.driver, in.query.status};
                return with_page(in.query, [&environments, call, filter,
                                            company = in.path.company](core::PageRequest page) {
                  return environments.list(call, company, filter, std::move(page));
                });
              }},
      Endpoint<CompanyPath, None, engine::CreateEnvironment, core::Stored<EnvironmentView>>{
          .verb = Verb::post,
          .path = "/api/companies/{company}/environments",
          .needs = Permission::company_operate,
          .tag = "environments",
          .says = "Create an environment; secrets in its config are sealed and bound with it",
          .status = 201,
          .call =
              [&environments](core::Call call, auto in) {
                return environments.create(call, in.path.company, std::move(in.body));
              }},
      Endpoint<CompanyPath, None, None, std::vector<engine::EnvironmentOverview>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/environments/overview",
          .needs = Permission::company_read,
          .tag = "environments",
          .says = "List up to 1000 environments with their last test, their leases and their users",
          .call = [&environments](
                      core::Call call,
                      auto in) { return environments.overview(call, in.path.company); }},
      Endpoint<CompanyPath, None, None, engine::Capabilities>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/environments/capabilities",
          .needs = Permission::company_read,
          .tag = "environments",
          .says = "Say which adapters, drivers and sandbox providers this server supports",
          .call = [&environments](
                      core::Call call,
                      auto in) { return environments.capabilities(call, in.path.company); }},
  };
}

std::vector<Route> single_environment_routes(engine::Environments& environments) {
  using core::Permission;
  using engine::EnvironmentView;
  return {
      Endpoint<EnvironmentPath, CompanyQuery, None, core::Stored<EnvironmentView>>{
          .verb = Verb::get,
          .path = "/api/environments/{environment}",
          .needs = Permission::company_read,
          .tag = "environments",
          .says = "Read an environment",
          .call =
              [&environments](core::Call call, auto in) {
                const auto next = [&environments, call, id = in.path.environment] {
                  return environments.get(call, id);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
      Endpoint<EnvironmentPath, CompanyQuery, engine::UpdateEnvironment,
               core::Stored<engine::UpdatedEnvironment>>{
          .verb = Verb::patch,
          .path = "/api/environments/{environment}",
          .needs = Permission::company_operate,
          .tag = "environments",
          .says = "Change an environment; with If-Match only the version that was read",
          .call =
              [&environments](core::Call call, auto in) {
                const auto next = [&environments, call, id = in.path.environment,
                                   body = std::move(in.body)] {
                  return environments.update(call, id, body);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
      Endpoint<EnvironmentPath, CompanyQuery, None, EnvironmentView>{
          .verb = Verb::delete_,
          .path = "/api/environments/{environment}",
          .needs = Permission::company_operate,
          .tag = "environments",
          .says = "Delete an environment that nothing blocks; answers what was removed",
          .call =
              [&environments](core::Call call, auto in) {
                const auto next = [&environments, call, id = in.path.environment] {
                  return environments.remove(call, id);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
      Endpoint<EnvironmentPath, CompanyQuery, None, engine::BlastRadius>{
          .verb = Verb::get,
          .path = "/api/environments/{environment}/delete-blast-radius",
          .needs = Permission::company_operate,
          .tag = "environments",
          .says = "Say what deleting an environment would break and what forbids it",
          .call =
              [&environments](core::Call call, auto in) {
                const auto next = [&environments, call, id = in.path.environment] {
                  return environments.blast_radius(call, id);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
      Endpoint<EnvironmentPath, CompanyQuery, None, engine::SecretRefs>{
          .verb = Verb::get,
          .path = "/api/environments/{environment}/secret-refs",
          .needs = Permission::company_operate,
          .tag = "environments",
          .says = "List the secrets that an environment names, without their values",
          .call =
              [&environments](core::Call call, auto in) {
                const auto next = [&environments, call, id = in.path.environment] {
                  return environments.secret_refs(call, id);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
  };
}

}  // namespace

std::vector<Route> environment_routes(engine::Engine& work) {
  std::vector<Route> all = company_environment_routes(work.environments);
  for (Route& route : single_environment_routes(work.environments)) all.push_back(std::move(route));
  return all;
}

}  // namespace berth::http
