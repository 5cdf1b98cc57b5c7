#include "http/routes/in_company.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {
namespace {

struct EnvironmentLeaseQuery {
  std::optional<core::CompanyId> company_id;
  std::optional<core::LeaseState> status;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(EnvironmentLeaseQuery, (), (company_id, status, limit, after))

struct LeaseQuery {
  std::optional<core::LeaseState> status;
  std::optional<core::EnvironmentId> environment_id;
  std::optional<bool> parked;
  std::optional<bool> held;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(LeaseQuery, (), (status, environment_id, parked, held, limit, after))

struct SandboxPath {
  core::SandboxId sandbox;
};
BOOST_DESCRIBE_STRUCT(SandboxPath, (), (sandbox))

struct SandboxQuery {
  std::optional<core::SandboxState> status;
  std::optional<core::EnvironmentId> environment_id;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(SandboxQuery, (), (status, environment_id, limit, after))

std::vector<Route> sandbox_routes(engine::Leases& leases) {
  using core::Permission;
  using engine::SandboxView;
  const std::string path = "/api/sandboxes/{sandbox}";
  return {
      Endpoint<CompanyPath, SandboxQuery, None, core::Listing<SandboxView>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/sandboxes",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "List the sandboxes of a company, newest first; status=idle lists those that no "
                  "lease holds and that are kept for the next run",
          .call =
              [&leases](core::Call call, auto in) {
                const engine::SandboxFilter filter{.status = in.query.status,
                                                   .environment_id = in.query.environment_id};
                return with_page(in.query, [&leases, call, filter,
                                            company = in.path.company](core::PageRequest page) {
                  return leases.sandboxes(call, company, filter, std::move(page));
                });
              }},
      Endpoint<SandboxPath, None, None, SandboxView>{
          .verb = Verb::get,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "Read a sandbox: who holds it, or until when it is kept for the next run",
          .call = [&leases](core::Call call,
                            auto in) { return leases.sandbox(call, in.path.sandbox); }},
      Endpoint<SandboxPath, None, engine::VisitSandbox, engine::LeaseView>{
          .verb = Verb::post,
          .path = path + "/lease",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "Take a lease of a sandbox that is kept for the next run, to work in it by hand; "
                  "release it, or let it end after ttlSeconds (900), and the sandbox is kept again",
          .status = 201,
          .call = [&leases](core::Call call,
                            auto in) { return leases.visit(call, in.path.sandbox, in.body); }},
      Endpoint<SandboxPath, None, None, SandboxView>{
          .verb = Verb::delete_,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "Remove a sandbox that no lease holds: one that is kept for the next run, or "
                  "whose removal failed; answers what it is now",
          .call = [&leases](core::Call call,
                            auto in) { return leases.remove_sandbox(call, in.path.sandbox); }},
  };
}

std::vector<Route> lease_lists(engine::Engine& work) {
  using core::Permission;
  engine::Environments& environments = work.environments;
  engine::Leases& leases = work.leases;
  return {
      Endpoint<EnvironmentPath, EnvironmentLeaseQuery, None, core::Listing<core::Lease>>{
          .verb = Verb::get,
          .path = "/api/environments/{environment}/leases",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "List the leases of an environment, most recently used first",
          .call =
              [&environments](core::Call call, auto in) {
                const auto next = [&environments, call, id = in.path.environment,
                                   query = in.query] {
                  return with_page(query, [&environments, call, id,
                                           status = query.status](core::PageRequest page) {
                    return environments.leases(call, id, status, std::move(page));
                  });
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
      Endpoint<CompanyPath, LeaseQuery, None, core::Listing<engine::LeaseView>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/environment-leases",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "List the leases of a company, most recently used first; parked=true lists those "
                  "that wait for an operator",
          .call =
              [&leases](core::Call call, auto in) {
                const engine::LeaseFilter filter{.status = in.query.status,
                                                 .environment_id = in.query.environment_id,
                                                 .parked_only = in.query.parked.value_or(false),
                                                 .held_only = in.query.held.value_or(false)};
                return with_page(in.query, [&leases, call, filter,
                                            company = in.path.company](core::PageRequest page) {
                  return leases.list(call, company, filter, std::move(page));
                });
              }},
  };
}

std::vector<Route> single_lease_routes(engine::Leases& leases) {
  using core::Permission;
  using engine::LeaseView;
  return {
      Endpoint<LeasePath, None, None, LeaseView>{
          .verb = Verb::get,
          .path = "/api/environment-leases/{lease}",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "Read a lease: who holds it, and what happens to it next",
          .call = [&leases](core::Call call, auto in) { return leases.get(call, in.path.lease); }},
      Endpoint<LeasePath, None, None, LeaseView>{
          .verb = Verb::post,
          .path = "/api/environment-leases/{lease}/release",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "Give back a lease that no run works with, also one that is parked",
          .call = [&leases](core::Call call,
                            auto in) { return leases.release(call, in.path.lease); }},
      Endpoint<LeasePath, None, None, LeaseView>{
          .verb = Verb::post,
          .path = "/api/environment-leases/{lease}/destroy",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "Give back a lease and destroy its sandbox",
          .call = [&leases](core::Call call,
                            auto in) { return leases.destroy(call, in.path.lease); }},
      Endpoint<LeasePath, None, None, places::Usage>{
          .verb = Verb::get,
          .path = "/api/environment-leases/{lease}/usage",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "What the place of a lease uses now, and has used",
          .call = [&leases](core::Call call,
                            auto in) { return leases.usage(call, in.path.lease); }},
      Endpoint<LeasePath, None, None, engine::ListeningPorts>{
          .verb = Verb::get,
          .path = "/api/environment-leases/{lease}/listening",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "List the ports on which something in the sandbox of a lease listens; no command "
                  "runs there for it",
          .call = [&leases](core::Call call,
                            auto in) { return leases.listening(call, in.path.lease); }},
      Endpoint<LeasePath, None, engine::ExecInLease, engine::ExecOutcome>{
          .verb = Verb::post,
          .path = "/api/environment-leases/{lease}/exec",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "Run one more command in a place that is held, and wait for its end; bytesLost "
                  "counts what it said and a full disk refused to keep (isTruncated is true then)",
          .call = [&leases](
                      core::Call call,
                      auto in) { return leases.exec(call, in.path.lease, std::move(in.body)); }},
      Endpoint<LeasePath, None, engine::AdoptSandbox, LeaseView>{
          .verb = Verb::post,
          .path = "/api/environment-leases/{lease}/adopt",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "Say which sandbox a lease waits for whose acquire was never answered; it is "
                  "destroyed",
          .call = [&leases](
                      core::Call call,
                      auto in) { return leases.adopt(call, in.path.lease, std::move(in.body)); }},
      Endpoint<LeasePath, None, engine::ForceResolve, LeaseView>{
          .verb = Verb::post,
          .path = "/api/environment-leases/{lease}/force-resolve",
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "End a lease on the operator's word, whatever its provider still holds",
          .call =
              [&leases](core::Call call, auto in) {
                return leases.force_resolve(call, in.path.lease, std::move(in.body));
              }},
  };
}

struct EgressQuery {
  std::optional<std::int64_t> offset;
  std::optional<std::int64_t> wait;  // seconds
};
BOOST_DESCRIBE_STRUCT(EgressQuery, (), (offset, wait))

Task<engine::LeaseEgress> read_egress(engine::Leases& leases, core::Call call, core::LeaseId id,
                                      EgressQuery query) {
  BERTH_CO_TRY(const std::int64_t offset, bounded("offset", query.offset, any_offset));
  BERTH_CO_TRY(const std::int64_t wait, bounded("wait", query.wait, wait_seconds));
  co_return co_await leases.egress(call, id, static_cast<std::uint64_t>(offset),
                                   std::chrono::seconds{wait});
}

std::vector<Route> egress_routes(engine::Leases& leases) {
  using core::Permission;
  const std::string path = "/api/environment-leases/{lease}/egress";
  return {
      Endpoint<LeasePath, EgressQuery, None, engine::LeaseEgress>{
          .verb = Verb::get,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "What the sandbox of a lease may reach, and what was decided about its "
                  "requests from an offset of the log on, or within a wait when nothing is there",
          .ends_with_client = true,
          .call =
              [&leases](core::Call call, auto in) {
                return read_egress(leases, std::move(call), in.path.lease, in.query);
              }},
      Endpoint<LeasePath, None, core::LinuxEgress, engine::LeaseEgress>{
          .verb = Verb::put,
          .path = path,
          .needs = Permission::company_operate,
          .tag = "leases",
          .says = "Replace what the sandbox of a lease may reach, at once; an open connection to "
                  "what is no longer allowed is cut",
          .call =
              [&leases](core::Call call, auto in) {
                return leases.set_egress(call, in.path.lease, std::move(in.body));
              }},
  };
}

std::vector<Route> probe_routes(engine::Engine& work) {
  using core::Permission;
  engine::Environments& environments = work.environments;
  engine::Leases& leases = work.leases;
  return {
      Endpoint<EnvironmentPath, CompanyQuery, None, engine::ProbeReport>{
          .verb = Verb::post,
          .path = "/api/environments/{environment}/probe",
          .needs = Permission::company_operate,
          .tag = "environments",
          .says = "Try an environment with a lease of its own; each step with its time",
          .call =
              [&environments, &leases](core::Call call, auto in) {
                const auto next = [&leases, call, id = in.path.environment] {
                  return leases.test(call, id);
                };
                return in_company(environments, call, in.path.environment, in.query.company_id,
                                  next);
              }},
      Endpoint<CompanyPath, None, engine::ProbeDraft, engine::ProbeReport>{
          .verb = Verb::post,
          .path = "/api/companies/{company}/environments/probe-config",
          .needs = Permission::company_operate,
          .tag = "environments",
          .says = "Try an environment that is not saved; nothing of it is stored",
          .call =
              [&leases](core::Call call, auto in) {
                return leases.probe_draft(call, in.path.company, std::move(in.body));
              }},
  };
}

}  // namespace

std::vector<Route> lease_routes(engine::Engine& work) {
  std::vector<Route> all = lease_lists(work);
  for (Route& route : single_lease_routes(work.leases)) all.push_back(std::move(route));
  for (Route& route : sandbox_routes(work.leases)) all.push_back(std::move(route));
  for (Route& route : egress_routes(work.leases)) all.push_back(std::move(route));
  for (Route& route : probe_routes(work)) all.push_back(std::move(route));
  return all;
}

}  // namespace berth::http
