#include "plugin_kit/checks.hpp"

#include <sys/wait.h>

namespace berth::plugin_kit {
namespace {

constexpr Limit first_start_limit{15'000};

Outcome starts(Bench& bench) {
  BERTH_CHECK_DO(bench.worker());
  return passed();
}

Outcome starts_soon(Bench& bench) {
  BERTH_CHECK_TRY(WorkerProcess worker, bench.spawn());
  const auto began = std::chrono::steady_clock::now();
  BERTH_CHECK_DO(bench.initialize(worker));
  const auto took = std::chrono::duration_cast<Limit>(std::chrono::steady_clock::now() - began);
  BERTH_CHECK_THAT(took <= bench.subject().patience.good_start,
                   "it took " + std::to_string(took.count()) + " ms");
  return passed();
}

// A worker must not mistake a slow host for one that has ended.
Outcome waits_for_its_host(Bench& bench) {
  BERTH_CHECK_TRY(WorkerProcess worker, bench.spawn());
  worker.read_until([&] { return worker.stdout_ended; }, Limit{1'500});
  BERTH_CHECK_THAT(!worker.stdout_ended, "the worker ended before it was asked anything");
  BERTH_CHECK_DO(bench.initialize(worker));
  return passed();
}

Outcome answers_while_it_starts(Bench& bench) {
  BERTH_CHECK_TRY(WorkerProcess worker, bench.spawn());
  const std::int64_t started = worker.call("initialize", bench.initialize_params());
  const std::int64_t health = worker.call("health", bj::object{});
  BERTH_CHECK_DO(worker.answer_to(health, first_start_limit));
  BERTH_CHECK_DO(worker.answer_to(started, first_start_limit));
  return passed();
}

Outcome starts_once(Bench& bench) {
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  const std::int64_t id = worker->call("initialize", bench.initialize_params());
  BERTH_CHECK_TRY(const bj::object answer, worker->answer_to(id, first_start_limit));
  BERTH_CHECK_THAT(answer.contains("error"), "a second initialize succeeded");
  return passed();
}

Outcome has_what_a_sandbox_needs(Bench& bench) {
  BERTH_CHECK_DO(bench.worker());
  for (const char* method :
       {"environmentValidateConfig", "environmentProbe", "environmentAcquireLease",
        "environmentReleaseLease", "environmentDestroyLease", "environmentRealizeWorkspace",
        "environmentExecute"}) {
    BERTH_CHECK_THAT(bench.has(method), std::string{method} + " is not in supportedMethods");
  }
  return passed();
}

Outcome keeps_the_manifests_word(Bench& bench) {
  BERTH_CHECK_DO(bench.worker());
  const plugins::DriverDeclaration& driver = bench.subject().driver;
  const std::vector<std::pair<bool, std::vector<std::string>>> promises{
      {driver.supports_interactive_setup,
       {"environmentStartInteractiveSetup", "environmentGetInteractiveSetup",
        "environmentCancelInteractiveSetup"}},
      {driver.supports_template_capture, {"environmentCaptureTemplate"}},
      {driver.supports_template_delete, {"environmentDeleteTemplate"}},
      {driver.capabilities.reusable_leases.value_or(false), {"environmentResumeLease"}},
      {driver.capabilities.native_sync_in.value_or(false), {"environmentSyncIn"}},
      {driver.capabilities.native_sync_out.value_or(false), {"environmentSyncOut"}},
      {driver.capabilities.duplex_command_stream.value_or(false),
       {"duplexChannelOpen", "duplexChannelWrite", "duplexChannelStop", "duplexChannelClose"}}};
  for (const auto& [is_declared, methods] : promises) {
    for (const std::string& method : methods) {
      BERTH_CHECK_THAT(
          !is_declared || bench.has(method),
          "the manifest declares what needs " + method + ", and the worker does not advertise it");
    }
  }
  return passed();
}

Outcome is_healthy(Bench& bench) {
  BERTH_CHECK_TRY(const bj::value answer, bench.ask("health", {}, quick));
  const std::string status = answer.is_object() ? text_at(answer.get_object(), "status") : "";
  BERTH_CHECK_THAT(status == "ok" || status == "degraded" || status == "error",
                   "health was answered with the status '" + status + "'");
  return passed();
}

}  // namespace

std::vector<Check> start_checks() {
  return {
      {"start.initialize", "initialize is answered within 15 s with ok and supportedMethods",
       "answer initialize with {ok: true, supportedMethods: [...]}; see its stderr", starts},
      {"start.soon", "initialize is answered within 5 s",
       "load what is large when it is first used, not when the worker starts", starts_soon,
       Weight::advised},
      {"start.slow_host", "a host that waits before initialize finds the worker alive",
       "wait for the first line without a limit", waits_for_its_host},
      {"start.concurrent", "a call that comes with initialize is answered too",
       "read on while setup runs, and answer each call when it is done", answers_while_it_starts},
      {"start.once", "a second initialize is refused",
       "answer an initialize after the first with an error", starts_once, Weight::advised},
      {"start.hooks", "the hooks that every sandbox provider needs are there",
       "implement the hook that is named", has_what_a_sandbox_needs},
      {"start.declared", "what the manifest declares is implemented",
       "implement the hook that is named, or take the declaration out of the manifest",
       keeps_the_manifests_word},
      {"start.health", "health is answered with a status", "answer {status: \"ok\"}", is_healthy},
  };
}

}  // namespace berth::plugin_kit
