#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

// Sandboxes as a whole: captured, compared, restored, forked and frozen.
namespace berth::http {
namespace {

struct TemplatePath {
  core::TemplateId template_;
};
BOOST_DESCRIBE_STRUCT(TemplatePath, (), (template_))

struct TemplateQuery {
  std::optional<core::TemplateState> status;
  std::optional<core::EnvironmentId> environment_id;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(TemplateQuery, (), (status, environment_id, limit, after))

std::vector<Route> template_table(engine::Templates& templates) {
  using core::Permission;
  return {
      Endpoint<LeasePath, None, engine::CaptureLease, core::Template>{
          .verb = Verb::post,
          .path = "/api/environment-leases/{lease}/capture",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Capture the sandbox of a lease as a template; it stands still meanwhile",
          .status = 201,
          .call =
              [&templates](core::Call call, auto in) {
                return templates.capture(call, in.path.lease, std::move(in.body));
              }},
      Endpoint<CompanyPath, TemplateQuery, None, core::Listing<core::Template>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/templates",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "List the templates of a company, newest first",
          .call =
              [&templates](core::Call call, auto in) {
                const engine::TemplateFilter filter{.status = in.query.status,
                                                    .environment_id = in.query.environment_id};
                return with_page(in.query, [&templates, call, filter,
                                            company = in.path.company](core::PageRequest page) {
                  return templates.list(call, company, filter, std::move(page));
                });
              }},
      Endpoint<TemplatePath, None, None, core::Template>{
          .verb = Verb::get,
          .path = "/api/templates/{template_}",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Read a template",
          .call = [&templates](core::Call call,
                               auto in) { return templates.get(call, in.path.template_); }},
      Endpoint<TemplatePath, None, None, core::Template>{
          .verb = Verb::delete_,
          .path = "/api/templates/{template_}",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Delete a template; refused while a sandbox, an environment or another template "
                  "stands on it",
          .call = [&templates](core::Call call,
                               auto in) { return templates.remove(call, in.path.template_); }},
      Endpoint<TemplatePath, None, engine::AdoptTemplate, core::Template>{
          .verb = Verb::post,
          .path = "/api/templates/{template_}/adopt",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says =
              "Say which template one waits for whose capture was never answered; it is deleted",
          .call =
              [&templates](core::Call call, auto in) {
                return templates.adopt(call, in.path.template_, std::move(in.body));
              }},
      Endpoint<TemplatePath, None, engine::ForgetTemplate, core::Template>{
          .verb = Verb::post,
          .path = "/api/templates/{template_}/force-resolve",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Say that a template whose capture was never answered is not there",
          .call =
              [&templates](core::Call call, auto in) {
                return templates.force_resolve(call, in.path.template_, std::move(in.body));
              }},
  };
}

std::vector<Route> snapshot_table(engine::Snapshots& snapshots) {
  using core::Permission;
  using engine::LeaseView;
  return {
      Endpoint<LeasePath, None, None, places::Changes>{
          .verb = Verb::get,
          .path = "/api/environment-leases/{lease}/changes",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says =
              "What was added, changed and removed in a sandbox since it started; in a path, bytes "
              "that are not printable UTF-8 are written \\xNN, and a backslash is doubled",
          .call = [&snapshots](core::Call call,
                               auto in) { return snapshots.changes(call, in.path.lease); }},
      Endpoint<LeasePath, None, engine::RollBackLease, LeaseView>{
          .verb = Verb::post,
          .path = "/api/environment-leases/{lease}/rollback",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Put the files of a sandbox back to what it started from, or to a template; its "
                  "processes end",
          .call =
              [&snapshots](core::Call call, auto in) {
                return snapshots.roll_back(call, in.path.lease, std::move(in.body));
              }},
      Endpoint<LeasePath, None, engine::ForkLease, LeaseView>{
          .verb = Verb::post,
          .path = "/api/environment-leases/{lease}/fork",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "A second sandbox, with a lease of its own, that begins as this one is now",
          .status = 201,
          .call = [&snapshots](core::Call call,
                               auto in) { return snapshots.fork(call, in.path.lease, in.body); }},
      Endpoint<LeasePath, None, None, LeaseView>{
          .verb = Verb::post,
          .path = "/api/environment-leases/{lease}/freeze",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Let all processes of a sandbox stand still",
          .call = [&snapshots](core::Call call,
                               auto in) { return snapshots.freeze(call, in.path.lease); }},
      Endpoint<LeasePath, None, None, LeaseView>{
          .verb = Verb::post,
          .path = "/api/environment-leases/{lease}/thaw",
          .needs = Permission::company_operate,
          .tag = "templates",
          .says = "Let the processes of a frozen sandbox go on",
          .call = [&snapshots](core::Call call,
                               auto in) { return snapshots.thaw(call, in.path.lease); }},
  };
}

}  // namespace

std::vector<Route> template_routes(engine::Engine& work) {
  std::vector<Route> all = template_table(work.templates);
  for (Route& route : snapshot_table(work.snapshots)) all.push_back(std::move(route));
  return all;
}

}  // namespace berth::http
