#include "plugin_kit/checks.hpp"

#include <boost/json/serialize.hpp>

namespace berth::plugin_kit {
namespace {

constexpr int method_not_found = -32601;
constexpr int not_implemented = -32004;

// The worker still answers.
Result<> is_alive(Bench& bench, WorkerProcess& worker) {
  const auto answer = worker.ask("health", bj::object{}, quick);
  if (!answer) return fail(answer.error().code, "then health: " + answer.error().message);
  (void)bench;
  return {};
}

Outcome survives(Bench& bench, const std::vector<std::string>& lines) {
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  for (const std::string& line : lines) {
    worker->send_bytes(line + "\n");
    const Result<> alive = is_alive(bench, *worker);
    if (!alive)
      return failed("after the line " + line.substr(0, 60) + ": " + alive.error().message);
  }
  return passed();
}

Outcome takes_pieces(Bench& bench) {
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  const std::string line = R"({"jsonrpc":"2.0","id":"in-pieces","method":"health","params":{}})"
                           "\r\n";
  worker->send_bytes("\n  \n");
  for (const char c : line) {
    worker->send_bytes({&c, 1});
    worker->read_until([] { return false; }, Limit{1});
  }
  BERTH_CHECK_DO(worker->answer_to("in-pieces", quick));
  return passed();
}

Outcome survives_garbage(Bench& bench) {
  return survives(bench,
                  {"{not json}", "[1,2,3]", "null", "\"text\"", R"({"id":5,"method":"health"})",
                   R"({"jsonrpc":"1.0","id":6,"method":"health"})",
                   std::string(2000, '[') + std::string(2000, ']')});
}

Outcome survives_strays(Bench& bench) {
  return survives(bench,
                  {R"({"jsonrpc":"2.0","method":"noSuchEvent","params":{}})",
                   R"({"jsonrpc":"2.0","id":424242,"result":{}})",
                   R"({"jsonrpc":"2.0","id":424242,"error":{"code":1,"message":"x"}})",
                   R"({"jsonrpc":"2.0","id":null,"method":"health"})", R"({"jsonrpc":"2.0"})"});
}

Outcome refuses(Bench& bench, const std::string& method, int code) {
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  const std::int64_t id = worker->call(method, bench.params());
  BERTH_CHECK_TRY(const bj::object answer, worker->answer_to(id, quick));
  const bj::value* error = answer.if_contains("error");
  BERTH_CHECK_THAT(error != nullptr && error->is_object(), method + " was answered with a result");
  const bj::value* given = error->get_object().if_contains("code");
  BERTH_CHECK_THAT(given != nullptr && given->is_int64() && given->get_int64() == code,
                   method + " was refused with the code " +
                       (given != nullptr ? bj::serialize(*given) : std::string{"(none)"}) +
                       " instead of " + std::to_string(code));
  return passed();
}

Outcome refuses_unknown(Bench& bench) {
  return refuses(bench, "noSuchMethod", method_not_found);
}

Outcome refuses_absent(Bench& bench) {
  BERTH_CHECK_DO(bench.worker());
  for (const char* method : {"handleWebhook", "environmentSyncIn", "environmentDeleteTemplate"}) {
    if (!bench.has(method)) return refuses(bench, method, not_implemented);
  }
  return skipped("every hook is there");
}

Outcome takes_large_lines(Bench& bench) {
  bj::object config = bench.subject().config;
  config["x-conformance"] = std::string(std::size_t{4} << 20, 'x');
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  const std::int64_t id =
      worker->call("environmentValidateConfig", bench.params({{"config", config}}));
  BERTH_CHECK_DO(worker->answer_to(id, Limit{60'000}));
  BERTH_CHECK_DO(is_alive(bench, *worker));
  return passed();
}

// A worker may reject or correct a wrong type; it may not end or remain silent.
Outcome survives_wrong_types(Bench& bench) {
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  const std::vector<bj::value> wrong{
      nullptr,
      bj::array{},
      "text",
      bj::object{},
      bench.params({{"config", 7}}),
      bench.params(
          {{"lease", "text"}, {"providerLeaseId", bj::object{}}, {"command", bj::array{}}})};
  for (const char* method :
       {"environmentValidateConfig", "environmentProbe", "environmentResumeLease",
        "environmentRealizeWorkspace", "environmentExecute", "environmentReleaseLease"}) {
    if (!bench.has(method)) continue;
    for (const bj::value& params : wrong) {
      // Nothing wrong remains for a probe that would really create a sandbox.
      const bool is_whole = params.is_object() && params.get_object().contains("environmentId") &&
                            params.get_object().at("config").is_object();
      if (is_whole && std::string_view{method} == "environmentProbe") continue;
      const std::int64_t id = worker->call(method, params);
      const auto answer = worker->answer_to(id, patient);
      if (!answer) {
        return failed(std::string{method} + " with " + bj::serialize(params).substr(0, 80) + ": " +
                      answer.error().message);
      }
    }
  }
  BERTH_CHECK_DO(is_alive(bench, *worker));
  return passed();
}

Outcome answers_all(Bench& bench) {
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  constexpr int calls = 100;
  const std::size_t strays = worker->stray_answers.size();
  std::vector<std::int64_t> ids;
  ids.reserve(calls);
  for (int i = 0; i < calls; ++i) {
    ids.push_back(i % 2 == 0 ? worker->call("health", bj::object{})
                             : worker->call("environmentValidateConfig", bench.params()));
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto answer = worker->answer_to(ids[i], Limit{60'000});
    if (!answer)
      return failed("call " + std::to_string(i + 1) + " of 100: " + answer.error().message);
  }
  worker->read_until([] { return false; }, Limit{50});
  BERTH_CHECK_THAT(worker->stray_answers.size() == strays, "a call was answered twice");
  return passed();
}

}  // namespace

std::vector<Check> wire_checks() {
  return {
      {"wire.pieces", "a line may come in any number of pieces, with CRLF and blank lines between",
       "collect bytes up to the newline before parsing; pass over blank lines", takes_pieces},
      {"wire.garbage", "lines that are not JSON-RPC 2.0 do not end the worker",
       "answer -32700 with id null, or ignore the line, and read on", survives_garbage},
      {"wire.strays", "unknown notifications, unexpected answers and null ids are ignored",
       "drop what is neither a request with an id nor an awaited answer", survives_strays},
      {"wire.unknown_method", "an unknown method is refused with -32601",
       "answer every request; -32601 for a name that the protocol does not know", refuses_unknown},
      {"wire.absent_hook", "a method without a hook is refused with -32004",
       "answer -32004 for names of the protocol that the plugin does not implement",
       refuses_absent},
      {"wire.large_line", "a line of 4 MiB is answered",
       "read lines of any length up to 128 MiB: files come in pieces of 4 MiB", takes_large_lines},
      {"wire.wrong_types", "parameters of a wrong type are answered and survived",
       "check the types of parameters and answer with an error", survives_wrong_types},
      {"wire.every_call", "a hundred calls at once are each answered once",
       "keep no state that a second call overwrites; answer each id once", answers_all},
  };
}

}  // namespace berth::plugin_kit
