#include "cli/commands/place.hpp"

#include "base/id.hpp"
#include "core/lifecycle.hpp"

#include <set>

namespace berth::cli {
namespace {

constexpr auto shown_by =
    "'berth ps' shows runs, 'berth sandbox ls' sandboxes, 'berth lease list' "
    "leases";

Result<std::string> lease_of_run(const bj::value& run) {
  const std::string lease = text_of(run, "leaseId");
  if (!lease.empty()) return lease;
  const std::string state = text_of(run, "status");
  const auto known = parse_name<core::RunState>(state);
  return fail(Errc::conflict, "run " + text_of(run, "id") + " is " + state + " and has no place",
              known && !core::is_final(*known)
                  ? "wait until it has started"
                  : "name a run that is at work: " + std::string{"'berth run list --status "} +
                        "running' lists them");
}

Result<std::string> lease_of_sandbox(const bj::value& sandbox) {
  const std::string lease = text_of(sandbox, "leaseId");
  if (!lease.empty()) return lease;
  const std::string id = text_of(sandbox, "id");
  const bool is_kept = text_of(sandbox, "status") == "idle";
  return fail(
      Errc::conflict,
      "sandbox " + id +
          (is_kept ? " is kept for the next run: no lease holds it now"
                   : " is " + text_of(sandbox, "status")),
      is_kept ? "start a run of its environment, which takes it, and name that run" : shown_by);
}

bool is_missing(const Error& error) {
  return std::string_view{name_of(error.code)}.ends_with("_not_found");
}

Result<std::string> find_by_id(Session& session, const std::string& id) {
  Result<bj::value> lease = session.find(lease_kind(), id);
  if (lease) return id;
  if (!is_missing(lease.error())) return std::unexpected(std::move(lease).error());
  if (const auto run = session.find(run_kind(), id)) return lease_of_run(*run);
  if (const auto sandbox = session.find(sandbox_kind(), id)) return lease_of_sandbox(*sandbox);
  for (const Kind* kind : {&environment_kind(), &agent_kind()}) {
    if (!session.find(*kind, id)) continue;
    return fail(Errc::bad_request, "'" + id + "' is an id of the kind " + kind->noun,
                std::string{"name a run, a lease or a sandbox: "} + shown_by);
  }
  return fail(Errc::lease_not_found, "no run, lease or sandbox has the id '" + id + "'", shown_by);
}

// What is named by its name is none of the three; the error says what it is.
std::unexpected<Error> not_a_place(Session& session, const std::string& named) {
  for (const Kind* kind : {&environment_kind(), &agent_kind()}) {
    const auto found = session.find(*kind, named);
    if (!found) continue;
    return fail(Errc::bad_request, "'" + named + "' is an " + kind->noun,
                std::string{"name a run, a lease or a sandbox of it: "} + shown_by);
  }
  return fail(Errc::lease_not_found, "no run, lease or sandbox is called '" + named + "'",
              shown_by);
}

}  // namespace

Result<std::string> find_place(Session& session, const std::string& named) {
  if (is_uuid(named)) return find_by_id(session, named);
  if (named == "last") {
    BERTH_TRY(const bj::value run, session.find(run_kind(), named));
    return lease_of_run(run);
  }
  // The same characters may end a run and a lease; they are one place where the lease is the same.
  std::set<std::string> leases;
  std::vector<std::string> candidates;
  std::optional<Error> why;
  for (const Kind* kind : {&lease_kind(), &run_kind(), &sandbox_kind()}) {
    const Result<bj::value> found = session.find(*kind, named);
    if (!found) {
      if (is_missing(found.error())) continue;
      if (found.error().code != Errc::conflict) return std::unexpected(found.error());
      why = found.error();
      continue;
    }
    candidates.push_back(kind->noun + " " + text_of(*found, "id"));
    Result<std::string> lease = kind == &lease_kind() ? Result<std::string>{text_of(*found, "id")}
                                : kind == &run_kind() ? lease_of_run(*found)
                                                      : lease_of_sandbox(*found);
    if (lease) {
      leases.insert(*lease);
    } else {
      why = std::move(lease).error();
    }
  }
  if (leases.size() == 1 && (!why || candidates.size() > 1)) return *leases.begin();
  if (leases.size() > 1) {
    Error error{.code = Errc::conflict,
                .message = "'" + named + "' fits several objects",
                .remedy = "give more characters of either end of the id"};
    error.facts["candidates"] = std::move(candidates);
    return std::unexpected(std::move(error));
  }
  if (why) return std::unexpected(*std::move(why));
  return not_a_place(session, named);
}

}  // namespace berth::cli
