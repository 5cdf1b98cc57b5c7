#include "cli/commands/place.hpp"

#include "base/id.hpp"
#include "core/lifecycle.hpp"

#include <set>

namespace berth::cli {
namespace {

constexpr auto shown_by =
    "'berth ps' shows runs, 'berth sandbox ls' sandboxes, 'berth lease list' "
    "leases";

// A lease, or a sandbox without a lease that is kept for the next run.
struct Spot {
  std::string lease = {};
  std::string kept = {};

  friend auto operator<=>(const Spot&, const Spot&) = default;
};

Result<Spot> spot_of_run(const bj::value& run) {
  const std::string lease = text_of(run, "leaseId");
  if (!lease.empty()) return Spot{.lease = lease};
  const std::string state = text_of(run, "status");
  const auto known = parse_name<core::RunState>(state);
  return fail(Errc::conflict, "run " + text_of(run, "id") + " is " + state + " and has no place",
              known && !core::is_final(*known)
                  ? "wait until it has started"
                  : "name a run that is at work: " + std::string{"'berth run list --status "} +
                        "running' lists them");
}

Result<Spot> spot_of_sandbox(const bj::value& sandbox) {
  const std::string lease = text_of(sandbox, "leaseId");
  if (!lease.empty()) return Spot{.lease = lease};
  const std::string id = text_of(sandbox, "id");
  const std::string status = text_of(sandbox, "status");
  if (status == "idle") return Spot{.kept = id};
  return fail(Errc::conflict, "sandbox " + id + " is " + status, shown_by);
}

bool is_missing(const Error& error) {
  return std::string_view{name_of(error.code)}.ends_with("_not_found");
}

Result<Spot> find_by_id(Context& context, const std::string& id) {
  Result<bj::value> lease = context.find(lease_kind(), id);
  if (lease) return Spot{.lease = id};
  if (!is_missing(lease.error())) return std::unexpected(std::move(lease).error());
  if (const auto run = context.find(run_kind(), id)) return spot_of_run(*run);
  if (const auto sandbox = context.find(sandbox_kind(), id)) return spot_of_sandbox(*sandbox);
  for (const Kind* kind : {&environment_kind(), &agent_kind()}) {
    if (!context.find(*kind, id)) continue;
    return fail(Errc::bad_request, "'" + id + "' is an id of the kind " + kind->noun,
                std::string{"name a run, a lease or a sandbox: "} + shown_by);
  }
  return fail(Errc::lease_not_found, "no run, lease or sandbox has the id '" + id + "'", shown_by);
}

// The name belongs to none of the three kinds; the error reports what it is.
std::unexpected<Error> not_a_place(Context& context, const std::string& named) {
  for (const Kind* kind : {&environment_kind(), &agent_kind()}) {
    const auto found = context.find(*kind, named);
    if (!found) continue;
    return fail(Errc::bad_request, "'" + named + "' is an " + kind->noun,
                std::string{"name a run, a lease or a sandbox of it: "} + shown_by);
  }
  return fail(Errc::lease_not_found, "no run, lease or sandbox is called '" + named + "'",
              shown_by);
}

Result<Spot> find_spot(Context& context, const std::string& named) {
  if (is_uuid(named)) return find_by_id(context, named);
  if (named == "last") {
    BERTH_TRY(const bj::value run, context.find(run_kind(), named));
    return spot_of_run(run);
  }
  // The same characters may end the ids of a run and of a lease; they are one place if the lease is
  // the same.
  std::set<Spot> spots;
  std::vector<std::string> candidates;
  std::optional<Error> why;
  for (const Kind* kind : {&lease_kind(), &run_kind(), &sandbox_kind()}) {
    const Result<bj::value> found = context.find(*kind, named);
    if (!found) {
      if (is_missing(found.error())) continue;
      if (found.error().code != Errc::conflict) return std::unexpected(found.error());
      why = found.error();
      continue;
    }
    candidates.push_back(kind->noun + " " + text_of(*found, "id"));
    Result<Spot> spot = kind == &lease_kind() ? Result<Spot>{Spot{.lease = text_of(*found, "id")}}
                        : kind == &run_kind() ? spot_of_run(*found)
                                              : spot_of_sandbox(*found);
    if (spot) {
      spots.insert(*spot);
    } else {
      why = std::move(spot).error();
    }
  }
  if (spots.size() == 1 && (!why || candidates.size() > 1)) return *spots.begin();
  if (spots.size() > 1) {
    Error error{.code = Errc::conflict,
                .message = "'" + named + "' fits several objects",
                .remedy = "give more characters of either end of the id"};
    error.facts["candidates"] = std::move(candidates);
    return std::unexpected(std::move(error));
  }
  if (why) return std::unexpected(*std::move(why));
  return not_a_place(context, named);
}

// The sandbox that an ended lease has left, if that is kept.
Result<std::string> kept_after(Context& context, const std::string& lease_id) {
  BERTH_TRY(const bj::value lease, context.get("/api/environment-leases/" + lease_id));
  const auto state = parse_name<core::LeaseState>(text_of(lease, "status"));
  const std::string sandbox = text_of(lease, "sandboxId");
  if (!state || !core::is_final(*state) || sandbox.empty()) return std::string{};
  const Result<bj::value> left = context.get("/api/sandboxes/" + sandbox);
  return left && text_of(*left, "status") == "idle" ? sandbox : std::string{};
}

}  // namespace

Result<std::string> find_place(Context& context, const std::string& named) {
  BERTH_TRY(Spot spot, find_spot(context, named));
  if (spot.kept.empty()) return std::move(spot.lease);
  return fail(Errc::conflict,
              "sandbox " + spot.kept + " is kept for the next run: no lease holds it now",
              "start a run of its environment, which takes it, and name that run");
}

Result<std::string> enter_place(Context& context, const std::string& named,
                                std::chrono::seconds longest) {
  BERTH_TRY(Spot spot, find_spot(context, named));
  if (spot.kept.empty()) {
    BERTH_TRY(spot.kept, kept_after(context, spot.lease));
    if (spot.kept.empty()) return std::move(spot.lease);
  }
  BERTH_TRY(const bj::value lease,
            context.send({.method = "POST",
                          .path = "/api/sandboxes/" + spot.kept + "/lease",
                          .body = bj::object{{"ttlSeconds", longest.count()}}}));
  const std::string id = text_of(lease, "id");
  context.at_end([id](Context& ending) -> Result<> {
    BERTH_DO(ending.send({.method = "POST", .path = "/api/environment-leases/" + id + "/release"}));
    return {};
  });
  return id;
}

}  // namespace berth::cli
