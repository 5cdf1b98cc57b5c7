// Tests of saved environments and of drafts.
#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"
#include "engine/environments/allowed_places.hpp"
#include "engine/journal.hpp"
#include "engine/leases/abilities.hpp"
#include "engine/leases/lease_lifecycle.hpp"
#include "engine/leases/leases.hpp"
#include "engine/secrets/environment_secrets.hpp"
#include "engine/templates/start_from.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"

namespace berth::engine {
namespace {

constexpr std::int64_t test_lease_ms = 10LL * 60 * 1000;
constexpr std::string_view test_exec = "test";

// The output of the test command is ignored.
class Unheard final : public places::OutputTaker {
 public:
  Task<> take(std::span<const places::OutputPiece> /*pieces*/) override { co_return Result<>{}; }
};

// Adds a step with its duration and result.
class Steps {
 public:
  Steps(const Clock& clock, ProbeReport& report) : clock_(clock), report_(report) {}

  void begin() { began_ = clock_.steady(); }
  void end(std::string name, const Result<>& outcome, std::string message) {
    const auto taken = clock_.steady() - began_;
    places::ProbeStep step{
        .name = std::move(name),
        .ok = outcome.has_value(),
        .duration_ms = std::chrono::duration_cast<std::chrono::milliseconds>(taken).count(),
        .message = outcome ? std::move(message) : outcome.error().message};
    if (!outcome) {
      step.code = name_of(outcome.error().code);
      if (!outcome.error().remedy.empty()) step.remedy = outcome.error().remedy;
      report_.ok = false;
    }
    report_.steps.push_back(std::move(step));
  }

 private:
  const Clock& clock_;
  ProbeReport& report_;
  Clock::Steady began_ = {};
};

template <class T>
Result<> outcome_of(const Result<T>& result) {
  if (result) return {};
  return std::unexpected(result.error());
}

// Runs a command that does nothing in the lease's place.
Task<> try_command(places::Place& place, const places::PlaceRef& facts) {
  const std::optional<std::string> anywhere;
  BERTH_CO_TRY(places::Commands* const commands, need<places::Lack::commands>(place, facts));
  BERTH_CO_TRY(const places::Workspace workspace, co_await commands->realize(facts, anywhere));
  places::Command command{
      .exec_id = std::string{test_exec}, .argv = {"true"}, .cwd = workspace.cwd};
  const std::string path = workspace.path.value_or("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
  if (!path.empty()) command.environment.emplace("PATH", Secret{path});
  BERTH_CO_DO(co_await commands->start(facts, command));
  Unheard nobody;
  BERTH_CO_TRY(const places::Ended ended,
               co_await commands->follow(facts, command.exec_id, 0, nobody));
  if (ended.exit_code == 0) co_return Result<>{};
  co_return fail(Errc::command_failed, "The command `true` did not succeed in the environment");
}

// A provider's report may repeat secrets that it was given.
void hide(ProbeReport& report, const std::map<std::string, Secret>& secrets) {
  if (secrets.empty()) return;
  report.summary = without_secrets(report.summary, secrets);
  for (places::ProbeStep& step : report.steps) {
    step.message = without_secrets(step.message, secrets);
  }
  if (!report.details) return;
  const std::string clean = without_secrets(encode_text(*report.details), secrets);
  const Result<bj::value> details = parse_json(clean);
  report.details = details && details->is_object() ? details->get_object() : bj::object{};
}

void note_lease(bj::object& details, const core::LeaseRecord& lease) {
  details["leaseId"] = lease.id.str();
  if (lease.provider_lease_id) details["providerLeaseId"] = *lease.provider_lease_id;
  if (lease.driver != core::DriverKind::sandbox) return;
  details["leasePolicy"] = name_of(lease.lease_policy);
  details["metadata"] = lease.metadata.value_or(bj::object{});
}

// Other clients look for the reason in the details.
void note_failure(ProbeReport& report, const bj::object& config) {
  if (report.ok) return;
  if (!report.details) report.details.emplace();
  report.details->emplace("error", report.summary);
  if (report.driver == core::DriverKind::sandbox) {
    report.details->emplace("provider", core::provider_of(config));
  }
}

Entry probe_entry(const core::CompanyId& company, std::string_view action, std::string id,
                  const ProbeReport& report) {
  bj::object details{
      {"driver", name_of(report.driver)}, {"ok", report.ok}, {"summary", report.summary}};
  if (auto isolation = peek<bj::value>(report.details, "isolation")) {
    details["isolation"] = *std::move(isolation);
  }
  return {company, action, "environment", std::move(id), std::move(details)};
}

}  // namespace

// Acquires an ad-hoc lease like a run's, uses it and releases it. Whatever happens in between, the
// lease is settled or left to the sweeper.
Task<> Leases::try_lease(const core::Environment& environment, ProbeReport& report) {
  Steps steps{services_.clock, report};
  steps.begin();
  const Time until = services_.clock.now() + test_lease_ms;
  BERTH_CO_TRY(auto row, co_await services_.store.write([&](store::Session& s) {
    return work_.intend(s, core::LeaseId::make(services_.random, services_.clock.now()),
                        environment, nullptr,
                        {.expires_at = until, .purpose = LeaseLifecycle::Terms::Purpose::test});
  }));
  Result<LeaseLifecycle::Held> held = co_await work_.acquire(row, {}, {});
  steps.end("lease", outcome_of(held), "Took lease " + row.value.id.str());
  if (held) {
    row = held->lease;
    BERTH_CO_TRY(places::Place* const place, work_.place_of(row.value));
    steps.begin();
    const Result<> ran = co_await try_command(*place, held->facts);
    const bool cannot = !ran && ran.error().code == Errc::execution_unsupported;
    if (!cannot) steps.end("command", ran, "Ran a command");
    row.value.release_event =
        ran || cannot ? core::LeaseEvent::release_succeeded : core::LeaseEvent::release_failed;
    if (report.details) note_lease(*report.details, row.value);
  }
  steps.begin();
  BERTH_CO_TRY(const auto settled, co_await work_.settle(std::move(row)));
  const bool is_over = core::is_final(settled.value.status);
  const Result<> released =
      is_over ? Result<>{}
              : Result<>{fail(Errc::lease_release_failed,
                              "Lease " + settled.value.id.str() + " could not be given back: " +
                                  settled.value.failure_reason.value_or(""),
                              "it is tried again by itself")};
  steps.end("release", released, "Gave the lease back");
  co_return Result<>{};
}

Task<ProbeReport> Leases::test(core::Call call, core::EnvironmentId id) {
  using Found = core::Stored<core::Environment>;
  BERTH_CO_TRY(const auto row,
               co_await services_.store.read([&](store::Session& s) -> Result<Found> {
                 BERTH_TRY(Found found, store::find_environment(s, core::Reach::of(call.who), id));
                 BERTH_DO(expect_allowed(s, services_, found.value));
                 return found;
               }));
  const core::Environment& environment = row.value;
  // What its lease would look like, without creating one.
  core::LeaseRecord draft{{.id = core::LeaseId::make(services_.random, services_.clock.now()),
                           .company_id = environment.company_id,
                           .environment_id = environment.id}};
  draft.driver = environment.driver;
  BERTH_CO_TRY(draft.teardown.config,
               co_await services_.store.read([&](store::Session& s) -> Result<bj::object> {
                 BERTH_TRY(StartFrom start, start_from(s, environment, {}));
                 return spelled_out(s, id, std::move(start.config));
               }));
  BERTH_CO_TRY(places::Place* const place, work_.place_of(draft));
  BERTH_CO_TRY(places::PlaceRef facts, co_await work_.facts(draft));
  const places::AcquireRequest request{.lease = std::move(facts)};
  BERTH_CO_TRY(ProbeReport report, co_await place->probe(request));
  hide(report, request.lease.secrets);
  if (report.ok) {
    const Result<> tried = co_await try_lease(environment, report);
    if (!tried) co_return std::unexpected(tried.error());
    if (!report.ok) report.summary = report.steps.back().message;
    for (const places::ProbeStep& step : report.steps) {
      if (!step.ok) report.summary = step.message;
    }
  }
  note_failure(report, environment.config);
  BERTH_CO_DO(co_await services_.store.write([&](store::Session& s) {
    return record(s, services_, call,
                  probe_entry(environment.company_id, "environment.probed", id.str(), report));
  }));
  services_.feed.changed(environment.company_id);
  co_return report;
}

Task<ProbeReport> Leases::probe_draft(core::Call call, core::CompanyId company, ProbeDraft draft) {
  BERTH_CO_TRY(const auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_company(s, core::Reach::of(call.who), company);
  }));
  const bj::object given = draft.config.value_or(bj::object{});
  core::ConfigForStore config;
  if (PluginConfigs::concerns(draft.driver, given)) {
    BERTH_CO_TRY(config, co_await plugins_.prepare(draft.driver, given));
  } else {
    BERTH_CO_TRY(config, core::normalize_for_probe(draft.driver, given));
  }
  BERTH_CO_DO(co_await services_.store.read([&](store::Session& s) {
    return expect_allowed(s, services_, company,
                          openings_of(draft.name.value_or("draft"), draft.driver, config.config));
  }));
  const Time now = services_.clock.now();
  places::AcquireRequest request{.lease = {.key = core::LeaseId::make(services_.random, now),
                                           .driver = draft.driver,
                                           .company_id = company}};
  if (allowed_to(services_, row.value).private_ssh) {
    request.lease.private_addresses = places::PrivateAddresses::reachable;
  }
  // A value in the draft is used from here and never stored. A reference is read without a binding,
  // on the authority of the operator who asks.
  for (core::BoundValue& bound : config.values) {
    request.lease.secrets.emplace(bound.path, std::move(bound.value));
  }
  for (const core::BoundRef& bound : config.refs) {
    BERTH_CO_TRY(ResolvedSecret found, co_await work_.read_for_draft(call, company, bound));
    request.lease.secrets.emplace(bound.path, std::move(found.value));
  }
  BERTH_CO_TRY(request.lease.config, co_await services_.store.read([&](store::Session& s) {
    return resolve_template(s, company, draft.driver, std::move(config.config));
  }));
  BERTH_CO_TRY(places::Place* const place, work_.place_of(request.lease));
  BERTH_CO_TRY(ProbeReport report, co_await place->probe(request));
  hide(report, request.lease.secrets);
  note_failure(report, request.lease.config);
  BERTH_CO_DO(co_await services_.store.write([&](store::Session& s) {
    return record(s, services_, call,
                  probe_entry(company, "environment.probed_unsaved", "unsaved", report));
  }));
  co_return report;
}

}  // namespace berth::engine
