#include "cli/run/verdict.hpp"

#include "base/json/peek.hpp"
#include "base/text.hpp"
#include "cli/net/client.hpp"
#include "cli/objects.hpp"
#include "cli/print/plain_words.hpp"
#include "core/lifecycle.hpp"
#include "core/output/attach.hpp"

namespace berth::cli {
namespace {

using core::RunState;

// A state that a newer server invented counts as one in which nothing was carried out.
RunState run_state(const bj::value& run) {
  return parse_name<RunState>(text_of(run, "status")).value_or(RunState::interrupted);
}

std::optional<int> own_code(const bj::value& run) {
  if (const auto code = peek<std::int64_t>(run, "exitCode")) return static_cast<int>(*code & 0xff);
  const int signal = core::signal_number(text_of(run, "signal"));
  if (signal != 0) return exit_signal_base + signal;
  return std::nullopt;
}

std::string remedy_for(std::string_view code, const std::string& told, const std::string& id) {
  if (code == name_of(Errc::command_not_found)) {
    if (!told.empty()) return told;  // it knows whose program is missing, and where
    return "check the name, or give the full path of the command in that environment";
  }
  if (code == name_of(Errc::command_not_executable)) {
    return "make the file executable, or run it with its interpreter";
  }
  if (code == name_of(Errc::working_directory_missing)) {
    return "make the folder, or name another with -w";
  }
  if (code == name_of(Errc::command_too_large)) {
    return "give the command less: large input goes through standard input or a file";
  }
  if (!told.empty()) return told;
  return "'berth run get " + id + "' and 'berth run events " + id + "' show what happened";
}

// A run's error message, and the remedy at its end.
struct Told {
  std::string message;
  std::string remedy;
};

Told told_by(const bj::value& run) {
  constexpr std::string_view joint = ". Remedy: ";
  const std::string text = plain_sentence(text_of(run, "error"));
  const std::size_t at = text.find(joint);
  if (at == std::string::npos) return {.message = text, .remedy = {}};
  return {.message = text.substr(0, at), .remedy = text.substr(at + joint.size())};
}

// " in environment 'NAME'", if known: a limit may be that of its environment.
std::string place_of(const bj::value& run) {
  const auto environment = peek<bj::object>(run, "environment");
  const std::string name = peek<std::string>(environment, "name").value_or("");
  return name.empty() ? "" : " in environment " + in_quotes(name);
}

std::int64_t count_in(const bj::value& object, std::string_view name) {
  return peek<std::int64_t>(object, name).value_or(0);
}

std::int64_t usage_of(const bj::value& run, std::string_view name) {
  return count_in(peek<bj::value>(run, "usageJson").value_or(nullptr), name);
}

int with_losses(int code, std::int64_t bytes_lost) {
  return code == 0 && bytes_lost > 0 ? exit_not_run : code;
}

}  // namespace

int exit_code_of_cause(Errc cause) {
  if (cause == Errc::command_not_found) return exit_not_found;
  return cause == Errc::command_not_executable ? exit_not_executable : exit_not_run;
}

int exit_code_of_run(const bj::value& run) {
  switch (run_state(run)) {
    case RunState::succeeded:
      return with_losses(own_code(run).value_or(0), usage_of(run, "bytesLost"));
    case RunState::failed:
      return own_code(run).value_or(
          exit_code_of_cause(parse_errc(text_of(run, "errorCode")).value_or(Errc::process_lost)));
    case RunState::timed_out: return exit_timed_out;
    case RunState::cancelled: return exit_cancelled;
    case RunState::interrupted:
    case RunState::queued:
    case RunState::starting:
    case RunState::running: return exit_not_run;
  }
  return exit_not_run;
}

std::optional<Error> error_of_run(const bj::value& run) {
  const std::string code = text_of(run, "errorCode");
  const std::string id = text_of(run, "id");
  const Told told = told_by(run);
  switch (run_state(run)) {
    case RunState::timed_out:
      return Error{Errc::timed_out,
                   "run " + id + place_of(run) + ": " +
                       (told.message.empty() ? "took longer than its time limit" : told.message),
                   told.remedy.empty() ? "give it more with --timeout" : told.remedy};
    case RunState::cancelled: return Error{Errc::cancelled, "run " + id + ": was cancelled"};
    default: break;
  }
  // The command's own exit code does not explain why the kernel ended it.
  if (code == name_of(Errc::out_of_memory)) {
    return Error{Errc::out_of_memory, "run " + id + place_of(run) + ": " + told.message,
                 told.remedy};
  }
  if (own_code(run) || exit_code_of_run(run) == 0) return std::nullopt;
  std::string message = told.message;
  if (message.empty()) message = "run " + id + ": ended as " + text_of(run, "status");
  const Errc cause = parse_errc(code).value_or(Errc::process_lost);
  return Error{cause, std::move(message), remedy_for(code, told.remedy, id)};
}

std::optional<std::string> remark_of_run(const bj::value& run) {
  const auto text = remark_of_output(usage_of(run, "bytesLost"), usage_of(run, "bytesOverLimit"));
  if (!text) return std::nullopt;
  const std::string id = text_of(run, "id");
  return "run " + id + ": " + *text + "; 'berth run events " + id + "' tells more";
}

int exit_code_of_command(const bj::value& exec) {
  if (text_of(exec, "outcome") == "timed_out") return exit_timed_out;
  if (const auto code = peek<std::int64_t>(exec, "exitCode")) return static_cast<int>(*code);
  const int signal = core::signal_number(text_of(exec, "signal"));
  return signal != 0 ? exit_signal_base + signal : exit_not_run;
}

int exit_code_of_exec(const bj::value& exec) {
  return with_losses(exit_code_of_command(exec), count_in(exec, "bytesLost"));
}

std::optional<std::string> remark_of_exec(const bj::value& exec) {
  return remark_of_output(count_in(exec, "bytesLost"), count_in(exec, "bytesOverLimit"));
}

std::optional<std::string> remark_of_output(std::int64_t bytes_lost,
                                            std::int64_t bytes_over_limit) {
  std::string text;
  if (bytes_lost > 0) {
    text = std::to_string(bytes_lost) +
           " bytes of output were lost: no space left on the disk that keeps it";
  }
  if (bytes_over_limit > 0) {
    text += (text.empty() ? "" : ", and ") + std::to_string(bytes_over_limit) +
            " bytes of output are more than is kept";
  }
  return text.empty() ? std::nullopt : std::optional{std::move(text)};
}

}  // namespace berth::cli
