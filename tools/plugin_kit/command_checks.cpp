#include "plugin_kit/checks.hpp"

#include <boost/json/serialize.hpp>

namespace berth::plugin_kit {
namespace {

bj::object shell(std::string_view script) {
  return {{"command", "sh"}, {"args", bj::array{"-c", script}}};
}

bj::object with_input(bj::object command, std::string_view input) {
  command["stdin"] = input;
  return command;
}

// The unexpected response, short enough for one line.
std::string shown(const bj::object& answer) {
  const std::string text = bj::serialize(answer);
  return text.size() <= 300 ? text : text.substr(0, 300) + "...";
}

bool has_exit_code(const bj::object& answer, std::int64_t code) {
  const bj::value* found = answer.if_contains("exitCode");
  return found != nullptr && found->is_int64() && found->get_int64() == code;
}

bool timed_out(const bj::object& answer) {
  const bj::value* found = answer.if_contains("timedOut");
  return found != nullptr && found->is_bool() && found->get_bool();
}

Outcome tells_streams_and_status(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  BERTH_CHECK_TRY(const bj::object answer,
                  bench.execute(lease, shell("echo out; echo err >&2; exit 3")));
  BERTH_CHECK_THAT(has_exit_code(answer, 3), "exit 3 gave " + shown(answer));
  BERTH_CHECK_THAT(answer.contains("timedOut") && !timed_out(answer),
                   "timedOut is not false: " + shown(answer));
  BERTH_CHECK_THAT(text_at(answer, "stdout") == "out\n", "stdout is not 'out': " + shown(answer));
  BERTH_CHECK_THAT(text_at(answer, "stderr").ends_with("err\n"),
                   "stderr is not 'err': " + shown(answer));
  return passed();
}

Outcome keeps_arguments(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  const std::vector<std::string> words{"a b",
                                       "$HOME",
                                       "'single'",
                                       "\"double\"",
                                       "back\\slash",
                                       "new\nline",
                                       "*",
                                       ";true",
                                       "-n",
                                       "\xC3\xA9\xF0\x9F\x9A\xA2",
                                       "\xE2\x80\xA8|\xE2\x80\xA9"};
  bj::array args{"-c", "printf '<%s>' \"$@\"", "sh"};
  std::string expected;
  for (const std::string& word : words) {
    args.emplace_back(word);
    expected += "<" + word + ">";
  }
  BERTH_CHECK_TRY(const bj::object answer,
                  bench.execute(lease, {{"command", "sh"}, {"args", args}}));
  BERTH_CHECK_THAT(text_at(answer, "stdout") == expected, "the arguments came as " + shown(answer));
  return passed();
}

Outcome hands_over_input(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  const std::string input = "line\n\xE2\x80\xA8 end without newline";
  BERTH_CHECK_TRY(const bj::object echoed, bench.execute(lease, with_input(shell("cat"), input)));
  BERTH_CHECK_THAT(text_at(echoed, "stdout") == input, "cat gave " + shown(echoed));
  BERTH_CHECK_TRY(const bj::object none, bench.execute(lease, shell("cat; echo done")));
  BERTH_CHECK_THAT(text_at(none, "stdout") == "done\n",
                   "without stdin, cat did not end at once: " + shown(none));
  const std::string large(std::size_t{3} << 20, 'x');
  BERTH_CHECK_TRY(const bj::object counted,
                  bench.execute(lease, with_input(shell("wc -c"), large)));
  BERTH_CHECK_THAT(text_at(counted, "stdout").find("3145728") != std::string::npos,
                   "of 3 MiB on stdin there arrived " + shown(counted));
  return passed();
}

Outcome sets_variables_and_folder(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  bj::object command = shell("printf '%s|%s' \"$CONFORMANCE\" \"$PWD\"");
  command["env"] = bj::object{{"CONFORMANCE", "a 'b' $c\n\xE2\x80\xA8"}};
  command["cwd"] = "/tmp";
  BERTH_CHECK_TRY(const bj::object answer, bench.execute(lease, command));
  BERTH_CHECK_THAT(text_at(answer, "stdout") == "a 'b' $c\n\xE2\x80\xA8|/tmp",
                   "variable and folder came as " + shown(answer));
  return passed();
}

// A command must see neither the worker's variables nor this process's.
Outcome leaks_no_variables(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  BERTH_CHECK_TRY(const bj::object answer, bench.execute(lease, shell("env")));
  const std::string variables = "\n" + text_at(answer, "stdout");
  for (const char* name : {"PAPERCLIP_PLUGIN_ID", "NODE_ENV", "NODE_PATH",
                           "PAPERCLIP_DEPLOYMENT_MODE", "PAPERCLIP_DEPLOYMENT_EXPOSURE"}) {
    BERTH_CHECK_THAT(variables.find("\n" + std::string{name} + "=") == std::string::npos,
                     std::string{name} + " of the worker is seen inside");
  }
  for (const auto& [name, value] : bench.subject().credentials) {
    BERTH_CHECK_THAT(variables.find("\n" + name + "=") == std::string::npos &&
                         (value.size() < 4 || variables.find(value) == std::string::npos),
                     "the credential " + name + " is seen inside");
  }
  return passed();
}

Outcome keeps_large_output(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  BERTH_CHECK_TRY(const bj::object answer,
                  bench.execute(lease, shell("i=0; while [ $i -lt 16384 ]; do "
                                             "printf '%063d\\n' $i; i=$((i+1)); done")));
  const std::string out = text_at(answer, "stdout");
  BERTH_CHECK_THAT(out.size() == std::size_t{1} << 20,
                   "of 1 MiB there came " + std::to_string(out.size()) + " bytes");
  BERTH_CHECK_THAT(out.ends_with("16383\n"), "the end of the output is not its end");
  return passed();
}

Outcome ends_in_time(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  const auto began = std::chrono::steady_clock::now();
  bj::object command = shell("echo begun; sleep 120");
  command["timeoutMs"] = 1000;
  BERTH_CHECK_TRY(const bj::object answer, bench.execute(lease, command, Limit{60'000}));
  const auto took = std::chrono::duration_cast<Limit>(std::chrono::steady_clock::now() - began);
  BERTH_CHECK_THAT(timed_out(answer), "timedOut is not true: " + shown(answer));
  BERTH_CHECK_THAT(answer.contains("exitCode") && answer.at("exitCode").is_null(),
                   "exitCode is not null: " + shown(answer));
  BERTH_CHECK_THAT(took >= Limit{900}, "it ended after " + std::to_string(took.count()) + " ms");
  return passed();
}

Outcome says_that_it_cannot_start(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  const auto answer =
      bench.execute(lease, {{"command", "no-such-command-in-any-sandbox"}, {"args", bj::array{}}});
  // An error is a valid response, and so is the shell's 127.
  if (!answer) {
    return answer.error().code == Errc::plugin_call_failed ? passed()
                                                           : failed(answer.error().message);
  }
  BERTH_CHECK_THAT(!has_exit_code(*answer, 0), "it is said to have succeeded");
  return passed();
}

Outcome does_not_block(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  bj::object command = shell("sleep 5; echo slept");
  command["lease"] = lease;
  command["cwd"] = bench.cwd_of(lease);
  const std::int64_t slow =
      worker->call("environmentExecute", bench.params(command), bench.fresh_id());
  const std::int64_t fast = worker->call("health", bj::object{});
  const auto began = std::chrono::steady_clock::now();
  BERTH_CHECK_DO(worker->answer_to(fast, quick));
  const auto took = std::chrono::duration_cast<Limit>(std::chrono::steady_clock::now() - began);
  BERTH_CHECK_TRY(const bj::object answer, worker->answer_to(slow, patient));
  BERTH_CHECK_THAT(answer.contains("result"), "the slow command failed");
  BERTH_CHECK_THAT(took < Limit{4'000},
                   "health waited " + std::to_string(took.count()) + " ms for a command");
  return passed();
}

// Streamed output must be a prefix of the whole output, or a host shows it twice.
Outcome streams(Bench& bench) {
  BERTH_CHECK_TRY(const bj::object lease, bench.shared_lease());
  BERTH_CHECK_TRY(WorkerProcess* const worker, bench.worker());
  bj::object command = shell("echo one; sleep 1; echo two; echo three >&2");
  command["lease"] = lease;
  command["cwd"] = bench.cwd_of(lease);
  const std::string invocation = bench.fresh_id();
  const std::size_t heard_before = worker->notifications.size();
  const std::int64_t id = worker->call("environmentExecute", bench.params(command), invocation);
  BERTH_CHECK_TRY(const bj::object answer, worker->answer_to(id, patient));
  BERTH_CHECK_THAT(answer.contains("result") && answer.at("result").is_object(),
                   "the command failed");
  std::map<std::string, std::string> live;
  for (std::size_t i = heard_before; i < worker->notifications.size(); ++i) {
    const bj::object& heard = worker->notifications[i];
    if (text_at(heard, "method") != "execute.log") continue;
    BERTH_CHECK_THAT(text_at(heard, "paperclipInvocationId") == invocation,
                     "execute.log does not carry the invocation of its call");
    const bj::object* params = heard.at("params").if_object();
    BERTH_CHECK_THAT(params != nullptr, "execute.log without params");
    live[text_at(*params, "stream")] += text_at(*params, "chunk");
  }
  const bool is_declared =
      bench.subject().driver.capabilities.incremental_session_output.value_or(false);
  if (live.empty() && !is_declared) return skipped("the manifest declares no live output");
  BERTH_CHECK_THAT(!live.empty(), "incrementalSessionOutput is declared, and no execute.log came");
  for (const auto& [stream, text] : live) {
    BERTH_CHECK_THAT(text_at(answer.at("result").get_object(), stream).starts_with(text),
                     "what was sent of " + stream + " is not how its result begins");
  }
  return passed();
}

}  // namespace

std::vector<Check> command_checks() {
  std::vector<Check> checks{
      {"execute.streams", "stdout, stderr and the exit status are those of the command",
       "return {exitCode, timedOut, stdout, stderr}; a command that fails is a result, no error",
       tells_streams_and_status},
      {"execute.arguments", "arguments arrive exactly, also quotes, newlines and U+2028",
       "quote each word for the shell, or use none; parse lines at the byte 0x0A only",
       keeps_arguments},
      {"execute.stdin", "input arrives whole, and without one the command reads an end",
       "close stdin when none is given; send 3 MiB without waiting for output", hands_over_input},
      {"execute.environment", "variables and the folder are those of the call",
       "pass env and cwd on, values unchanged", sets_variables_and_folder},
      {"execute.no_leak", "a command sees no variable of the worker and no credential",
       "start commands with an environment of your own making, not with process.env",
       leaks_no_variables},
      {"execute.large_output", "1 MiB of output arrives whole",
       "read output until it ends, not until the process does", keeps_large_output},
      {"execute.timeout", "a command that exceeds timeoutMs is ended: timedOut, exitCode null",
       "end the command and all it started when timeoutMs has passed", ends_in_time},
      {"execute.not_found", "a command that is not there does not succeed",
       "answer with an error, or with the exit status of the shell", says_that_it_cannot_start},
      {"execute.concurrent", "a running command holds up no other call",
       "run commands beside the loop that reads calls", does_not_block},
      {"execute.live", "live output is declared when it is there, and is how the result begins",
       "send execute.log chunks in order, and all of them again in the result", streams},
  };
  for (Check& check : checks) check.needs = {"environmentAcquireLease", "environmentExecute"};
  return checks;
}

}  // namespace berth::plugin_kit
