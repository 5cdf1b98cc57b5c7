#include "engine/leases/leases.hpp"
#include "api/tables.hpp"
#include "api/use.hpp"

namespace berth::api {
namespace {

struct LeaseOptions {
  std::optional<core::LeaseState> status;
  std::optional<core::EnvironmentId> environment_id;
  std::optional<bool> parked;
  std::optional<bool> held;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(LeaseOptions, (), (status, environment_id, parked, held, limit, after))

Task<core::Listing<engine::LeaseView>> list_leases(engine::Leases& leases, core::Call call,
                                                   core::CompanyId company, LeaseOptions options) {
  BERTH_CO_TRY(core::PageRequest page, page_of(options));
  engine::LeaseFilter filter{.status = options.status,
                             .environment_id = options.environment_id,
                             .parked_only = options.parked.value_or(false),
                             .held_only = options.held.value_or(false)};
  co_return co_await leases.list(std::move(call), std::move(company), std::move(filter),
                                 std::move(page));
}

struct SandboxOptions {
  std::optional<core::SandboxState> status;
  std::optional<core::EnvironmentId> environment_id;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(SandboxOptions, (), (status, environment_id, limit, after))

Task<core::Listing<engine::SandboxView>> list_sandboxes(engine::Leases& leases, core::Call call,
                                                        core::CompanyId company,
                                                        SandboxOptions options) {
  BERTH_CO_TRY(core::PageRequest page, page_of(options));
  engine::SandboxFilter filter{.status = options.status, .environment_id = options.environment_id};
  co_return co_await leases.sandboxes(std::move(call), std::move(company), std::move(filter),
                                      std::move(page));
}

struct EgressOptions {
  std::optional<std::int64_t> offset;
  std::optional<std::int64_t> wait;  // seconds

  Result<> check() const {
    return check_bounds({{"offset", offset, any_offset}, {"wait", wait, wait_seconds}});
  }
};
BOOST_DESCRIBE_STRUCT(EgressOptions, (), (offset, wait))

Task<engine::LeaseEgress> read_lease_egress(engine::Leases& leases, core::Call call,
                                            core::LeaseId id, EgressOptions options) {
  const auto offset = static_cast<std::uint64_t>(options.offset.value_or(0));
  const std::chrono::seconds wait{options.wait.value_or(0)};
  co_return co_await leases.egress(std::move(call), std::move(id), offset, wait);
}

}  // namespace

std::vector<Entry> lease_operations(engine::Leases& leases) {
  using core::Permission;
  using engine::Leases;
  return {
      Operation{.name = "lease.list",
                .needs = Permission::company_operate,
                .says = "List the leases of a company, most recently used first; parked=true lists "
                        "those that wait for an operator",
                .call = use(leases, list_leases)},
      Operation{.name = "lease.get",
                .needs = Permission::company_operate,
                .says = "Read a lease: who holds it, and what happens to it next",
                .call = use(leases, &Leases::get)},
      Operation{.name = "lease.release",
                .needs = Permission::company_operate,
                .says = "Give back a lease that no run works with, also one that is parked",
                .call = use(leases, &Leases::release)},
      Operation{.name = "lease.destroy",
                .needs = Permission::company_operate,
                .says = "Give back a lease and destroy its sandbox",
                .call = use(leases, &Leases::destroy)},
      Operation{.name = "lease.usage",
                .needs = Permission::company_operate,
                .says = "What the place of a lease uses now, and has used",
                .call = use(leases, &Leases::usage)},
      Operation{.name = "lease.listening",
                .needs = Permission::company_operate,
                .says = "List the ports on which something in the sandbox of a lease listens; no "
                        "command runs there for it",
                .call = use(leases, &Leases::listening)},
      Operation{.name = "lease.exec",
                .needs = Permission::company_operate,
                .says = "Run one more command in a place that is held, and wait for its end; "
                        "bytesLost counts what it said and a full disk refused to keep "
                        "(isTruncated is true then)",
                .call = use(leases, &Leases::exec)},
      Operation{.name = "lease.adopt",
                .needs = Permission::company_operate,
                .says = "Say which sandbox a lease waits for whose acquire was never answered; it "
                        "is destroyed",
                .call = use(leases, &Leases::adopt)},
      Operation{.name = "lease.force_resolve",
                .needs = Permission::company_operate,
                .says = "End a lease on the operator's word, whatever its provider still holds",
                .call = use(leases, &Leases::force_resolve)},
      Operation{.name = "lease.egress",
                .needs = Permission::company_operate,
                .says = "What the sandbox of a lease may reach, and what was decided about its "
                        "requests from an offset of the log on, or within a wait when nothing is "
                        "there",
                .call = use(leases, read_lease_egress)},
      Operation{.name = "lease.set_egress",
                .needs = Permission::company_operate,
                .says = "Replace what the sandbox of a lease may reach, at once; an open "
                        "connection to what is no longer allowed is cut",
                .call = use(leases, &Leases::set_egress)},
  };
}

std::vector<Entry> sandbox_operations(engine::Leases& leases) {
  using core::Permission;
  using engine::Leases;
  return {
      Operation{.name = "sandbox.list",
                .needs = Permission::company_operate,
                .says = "List the sandboxes of a company, newest first; status=idle lists those "
                        "that no lease holds and that are kept for the next run",
                .call = use(leases, list_sandboxes)},
      Operation{.name = "sandbox.get",
                .needs = Permission::company_operate,
                .says = "Read a sandbox: who holds it, or until when it is kept for the next run",
                .call = use(leases, &Leases::sandbox)},
      Operation{.name = "sandbox.lease",
                .needs = Permission::company_operate,
                .says = "Take a lease of a sandbox that is kept for the next run, to work in it by "
                        "hand; release it, or let it end after ttlSeconds (900), and the sandbox "
                        "is kept again",
                .call = use(leases, &Leases::visit)},
      Operation{.name = "sandbox.delete",
                .needs = Permission::company_operate,
                .says = "Remove a sandbox that no lease holds: one that is kept for the next run, "
                        "or whose removal failed; answers what it is now",
                .call = use(leases, &Leases::remove_sandbox)},
  };
}

}  // namespace berth::api
