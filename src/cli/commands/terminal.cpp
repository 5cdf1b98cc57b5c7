#include "cli/commands/terminal.hpp"

#include "base/clock.hpp"
#include "base/random.hpp"
#include "cli/run/attachment.hpp"
#include "cli/run/raw_terminal.hpp"
#include "cli/run/verdict.hpp"

namespace berth::cli {
namespace {

// The command is part of the stream's URL, whose length servers and proxies limit.
constexpr std::size_t path_bytes_max = 12'000;

enum class Typing { raw, in_lines, nothing };

Result<int> sit_at(Context& context, AttachOptions request, Typing typing) {
  BERTH_TRY(const Client* const server, context.client());
  Console& console = context.console();
  if (typing != Typing::nothing) request.stdin_fd = console.in;
  if (context.flags().quiet) request.remarks = Remarks::silent;
  Attachment attachment{*server, console};
  std::optional<RawTerminal> raw;
  if (typing == Typing::raw && console.in_is_terminal) {
    BERTH_TRY(RawTerminal entered, RawTerminal::enter(console.in));
    raw.emplace(std::move(entered));
    request.terminal_fd = console.in;
  }
  BERTH_TRY(const AttachEnd end, attachment.follow(std::move(request)));
  raw.reset();
  if (const auto* ended = std::get_if<RunEnded>(&end)) {
    return tell_end_of_exec(context, ended->run);
  }
  if (const auto* left = std::get_if<Left>(&end)) return exit_signal_base + left->signal;
  return 0;
}

}  // namespace

int tell_end_of_exec(Context& context, const bj::value& exec) {
  const int code = exit_code_of_exec(exec);
  // Even with --quiet, the user sees why a success counts as a failure.
  const bool is_due = !context.flags().quiet || code != exit_code_of_command(exec);
  if (const auto remark = remark_of_exec(exec); remark && is_due) {
    context.console().err << "berth: " << *remark << "\n";
  }
  return code;
}

Result<int> sit_in_terminal(Context& context, const std::string& lease_id,
                            const std::vector<std::string>& command, const std::string& cwd) {
  const Console& console = context.console();
  const core::TerminalSize size =
      console.in_is_terminal ? terminal_size(console.in) : core::TerminalSize{};
  SystemRandom random;
  // Chosen here, so that a reconnect reaches the same terminal.
  std::string path = "/api/environment-leases/" + lease_id +
                     "/terminal?id=" + make_uuid(random, SystemClock{}.now()) +
                     "&columns=" + std::to_string(size.columns) +
                     "&rows=" + std::to_string(size.rows);
  if (!command.empty()) path += "&command=" + url_encoded(encode_text(command));
  if (!cwd.empty()) path += "&cwd=" + url_encoded(cwd);
  return sit_at(context, {.run_id = "terminal of lease " + lease_id, .path = std::move(path)},
                Typing::raw);
}

Result<int> log_in(Context& context, const std::string& lease_id, const std::string& program) {
  return sit_at(context,
                {.run_id = "login in lease " + lease_id,
                 .path = "/api/environment-leases/" + lease_id + "/login?command=" + program,
                 .on_break = OnBreak::end},
                Typing::raw);
}

Result<int> stream_command(Context& context, const StreamedCommand& wanted) {
  const bool has_input = wanted.input == StreamedCommand::Input::standard;
  std::string path = "/api/environment-leases/" + wanted.lease_id +
                     "/stream?command=" + url_encoded(encode_text(wanted.argv));
  if (!wanted.cwd.empty()) path += "&cwd=" + url_encoded(wanted.cwd);
  if (wanted.timeout_ms) path += "&timeoutMs=" + std::to_string(*wanted.timeout_ms);
  if (!has_input) path += "&hasInput=false";
  // A user who types must see the output before the end of the input.
  if (has_input && context.console().in_is_terminal) path += "&interactive=true";
  if (path.size() > path_bytes_max) {
    return fail(Errc::command_too_large,
                "the command is too long: it has " + std::to_string(path.size()) +
                    " bytes as an address, of at most " + std::to_string(path_bytes_max),
                "give a script as standard input: berth exec -i LEASE -- sh <SCRIPT");
  }
  return sit_at(context,
                {.run_id = "command in lease " + wanted.lease_id,
                 .path = std::move(path),
                 .on_break = OnBreak::end},
                has_input ? Typing::in_lines : Typing::nothing);
}

}  // namespace berth::cli
