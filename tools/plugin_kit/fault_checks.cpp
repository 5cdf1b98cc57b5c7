#include "base/strings.hpp"
#include "plugin_kit/checks.hpp"

#include <sys/wait.h>

#include <csignal>

namespace berth::plugin_kit {
namespace {

std::string short_list(const std::vector<std::string>& texts) {
  return joined(texts, "; ").substr(0, 400);
}

// Sends a call and kills the worker a moment later without warning, as a machine failure would.
Result<> crash_at(Bench& bench, const std::string& method, const bj::object& more) {
  BERTH_TRY(WorkerProcess* const worker, bench.worker());
  const std::int64_t id = worker->call(method, bench.params(more), bench.fresh_id());
  // Long enough for a command to begin, and too short for anything else to finish.
  (void)worker->answer_to(id, Limit{method == "environmentExecute" ? 500 : 5});
  bench.kill_worker();
  return {};
}

// After a crash, a host requests the sandbox of the same run again and destroys it.
Outcome crash_and_clear(Bench& bench, const std::string& method) {
  const std::string run_id = bench.fresh_id();
  bj::object lease;
  if (method != "environmentAcquireLease") {
    BERTH_CHECK_TRY(lease, bench.acquire(run_id));
  }
  bj::object more{{"runId", run_id}, {"lease", lease}, {"workspace", bj::object{}}};
  if (!lease.empty()) more["providerLeaseId"] = lease.at("providerLeaseId");
  if (method == "environmentExecute") {
    more["command"] = "sh";
    more["args"] = bj::array{"-c", "sleep 300 & sleep 300"};
    more["cwd"] = bench.cwd_of(lease);
  }
  BERTH_CHECK_DO(crash_at(bench, method, more));
  if (lease.empty()) {
    BERTH_CHECK_TRY(lease, bench.acquire(run_id));
  }
  BERTH_CHECK_DO(bench.destroy_and_look(lease));
  bench.retire_worker();
  const std::vector<std::string> left = bench.orphans();
  BERTH_CHECK_THAT(left.empty(), "processes are left after destroy: " + short_list(left));
  return passed();
}

Check crash_check(const std::string& name, const std::string& method) {
  return {"crash." + name,
          "a worker that is killed during " + name + " leaves nothing behind",
          "find a sandbox again by what the call says, not by what the worker remembers",
          [method](Bench& bench) { return crash_and_clear(bench, method); },
          Weight::required,
          {"environmentAcquireLease", "environmentDestroyLease", method}};
}

// The response came too late or never: the host retries, and then the response comes twice.
Outcome survives_lost_answer(Bench& bench) {
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  const std::string run_id = bench.fresh_id();
  const std::int64_t lost =
      worker->call("environmentAcquireLease", bench.params({{"runId", run_id}}), bench.fresh_id());
  BERTH_CHECK_TRY(const bj::object again, bench.acquire(run_id));
  BERTH_CHECK_TRY(const bj::object late, worker->answer_to(lost, patient));
  BERTH_CHECK_DO(bench.destroy_and_look(again));
  const bj::value* first = late.if_contains("result");
  if (first == nullptr || !first->is_object()) return passed();  // it was refused the second time
  if (text_at(first->get_object(), "providerLeaseId") == text_at(again, "providerLeaseId")) {
    return passed();
  }
  BERTH_CHECK_DO(bench.destroy(first->get_object()));
  return failed("an acquire that was repeated for the same run made a second sandbox");
}

// How a host may mishandle the worker's requests while the worker starts.
Outcome survives_host(Bench& bench, const std::function<void(WorkerProcess&)>& misbehave,
                      Limit limit) {
  BERTH_CHECK_DO(bench.worker());
  if (!bench.asks_host()) return skipped("the worker asks its host nothing while it starts");
  BERTH_CHECK_TRY(WorkerProcess worker, bench.spawn());
  misbehave(worker);
  const std::int64_t started = worker.call("initialize", bench.initialize_params());
  // Any response will do: a failed request may make the start fail.
  BERTH_CHECK_DO(worker.answer_to(started, limit));
  BERTH_CHECK_DO(worker.ask("health", bj::object{}, quick));
  return passed();
}

bj::object unknown_method() {
  return {{"error", {{"code", -32601}, {"message", "unknown method"}}}};
}

Outcome survives_doubled_answers(Bench& bench) {
  return survives_host(
      bench,
      [](WorkerProcess& worker) {
        worker.answer_with([&worker](const bj::object& request) -> std::optional<bj::object> {
          bj::object twin{{"jsonrpc", "2.0"}, {"id", request.at("id")}, {"result", nullptr}};
          worker.send(twin);
          return unknown_method();
        });
      },
      Limit{40'000});
}

Outcome survives_silence(Bench& bench) {
  return survives_host(
      bench,
      [](WorkerProcess& worker) {
        worker.answer_with([](const bj::object&) { return std::optional<bj::object>{}; });
      },
      bench.subject().patience.silence);
}

Outcome shuts_down(Bench& bench) {
  BERTH_CHECK_TRY(WorkerProcess worker, bench.spawn());
  BERTH_CHECK_DO(bench.initialize(worker));
  BERTH_CHECK_DO(worker.ask("shutdown", bj::object{}, bench.subject().patience.stop));
  const auto status = worker.wait_exit(bench.subject().patience.stop);
  BERTH_CHECK_THAT(status, "the worker still runs long after it answered shutdown");
  BERTH_CHECK_THAT(WIFEXITED(*status) && WEXITSTATUS(*status) == 0,
                   "the worker ended with the status " + std::to_string(*status));
  return passed();
}

Outcome ends_with_its_host(Bench& bench) {
  BERTH_CHECK_TRY(WorkerProcess worker, bench.spawn());
  BERTH_CHECK_DO(bench.initialize(worker));
  worker.close_stdin();
  BERTH_CHECK_THAT(worker.wait_exit(bench.subject().patience.stop),
                   "the worker still runs long after its stdin was closed");
  return passed();
}

Outcome leaves_nothing(Bench& bench) {
  const std::vector<std::string> kept = bench.clear();
  BERTH_CHECK_THAT(kept.empty(), short_list(kept));
  const std::vector<std::string> left = bench.orphans();
  BERTH_CHECK_THAT(left.empty(), "processes are left: " + short_list(left));
  return passed();
}

// Runs last, and covers everything that was called before.
Outcome keeps_stdout_clean(Bench& bench) {
  BERTH_CHECK_THAT(bench.garbage().empty(),
                   std::to_string(bench.garbage().size()) +
                       " lines on stdout are not messages, the first is: " +
                       bench.garbage().front().substr(0, 100));
  return passed();
}

}  // namespace

std::vector<Check> fault_checks() {
  return {
      {"host.repeats",
       "an acquire that is repeated for the same run makes no second sandbox",
       "make the id of a sandbox from the run's id, and hand out again what is there",
       survives_lost_answer,
       Weight::advised,
       {"environmentAcquireLease", "environmentDestroyLease"}},
      {"host.doubles", "answers of the host that come twice are survived",
       "forget a question when its answer has come; ignore unknown ids", survives_doubled_answers},
      {"host.silent", "a host that never answers a question does not stop the worker for ever",
       "give up a question after 30 s", survives_silence},
      crash_check("acquire", "environmentAcquireLease"),
      crash_check("realize", "environmentRealizeWorkspace"),
      crash_check("execute", "environmentExecute"),
      crash_check("resume", "environmentResumeLease"),
      crash_check("release", "environmentReleaseLease"),
      crash_check("destroy", "environmentDestroyLease"),
      {"stop.shutdown", "shutdown is answered, and then the worker ends with status 0",
       "answer, then exit; do not wait for calls under way", shuts_down},
      {"stop.host_gone", "a worker whose stdin is closed ends", "exit when stdin ends",
       ends_with_its_host},
      {"left.nothing", "after all of it no folder and no process is left",
       "end what was started and remove what was made in destroy", leaves_nothing},
      {"left.clean_stdout", "nothing but messages is written to stdout",
       "write to stderr, or send log notifications; console.log breaks messages",
       keeps_stdout_clean},
  };
}

}  // namespace berth::plugin_kit
