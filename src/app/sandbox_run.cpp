#include "app/sandbox_run.hpp"

#include "app/work_folder.hpp"
#include "base/async/task_group.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "cli/keeper_program.hpp"
#include "cli/print/table.hpp"
#include "cli/run/raw_terminal.hpp"
#include "cli/run/readiness.hpp"
#include "cli/run/verdict.hpp"
#include "cli/sandbox_shortfall.hpp"
#include "core/config/sandbox_fields.hpp"
#include "keepers/keeper_values.hpp"
#include "places/linux/linux.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ostream>

namespace berth::app {
namespace {

using namespace std::chrono_literals;

constexpr const char* exec_id = "command";
constexpr std::int64_t hold_ms = 30'000;
constexpr auto renew_every = 10s;
constexpr std::int64_t grace_ms = 2000;
constexpr std::size_t input_bytes = std::size_t{64} << 10;

Result<> write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EPIPE) return fail(Errc::cancelled, "the output has no reader");
    if (done < 0) return io_failure("write", fd == STDERR_FILENO ? "stderr" : "stdout", errno);
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return {};
}

// Passes output on as it arrives. If the reader has closed the pipe, the command ends, as with
// SIGPIPE.
class Streams final : public places::OutputTaker {
 public:
  explicit Streams(const cli::Console& console) : console_(console) {}

  Task<> take(std::span<const places::OutputPiece> pieces) override {
    for (const places::OutputPiece& piece : pieces) {
      if (piece.kind == places::OutputKind::note) continue;  // the end reports how much was lost
      const bool is_out = piece.kind == places::OutputKind::out;
      const Result<> written = write_all(is_out ? console_.out_fd : console_.err_fd, piece.bytes);
      is_read_ = written || written.error().code != Errc::cancelled;
      if (!written) co_return written;
    }
    co_return Result<>{};
  }
  bool is_read() const { return is_read_; }

 private:
  const cli::Console& console_;
  bool is_read_ = true;
};

// If a signal ended us, the exit code names that signal.
int exit_code_of(const places::Ended& ended, int interrupted_by) {
  switch (ended.outcome) {
    case places::Outcome::timed_out: return cli::exit_timed_out;
    case places::Outcome::stopped:
      return interrupted_by != 0 ? cli::exit_signal_base + interrupted_by : cli::exit_cancelled;
    case places::Outcome::lapsed:
    case places::Outcome::lost: return cli::exit_not_run;
    case places::Outcome::exited:
    case places::Outcome::signaled: break;
  }
  if (ended.exit_code) return static_cast<int>(*ended.exit_code);
  for (int number = 1; number < NSIG; ++number) {
    if (keepers::signal_name(number) == ended.signal) return cli::exit_signal_base + number;
  }
  return cli::exit_signal_base;
}

// A sandbox that is to reach nothing need not wait for a way out.
places::LinuxOptions options_with_way_out(places::LinuxOptions options, const bj::object& config,
                                          places::EgressGateway& egress_gateway) {
  if (config.contains("egress")) options.egress_gateway = &egress_gateway;
  return options;
}

class SandboxRun {
 public:
  SandboxRun(asio::io_context& loop, cli::SandboxRequest request, cli::Console& console,
             places::LinuxOptions options)
      : loop_(loop),
        request_(std::move(request)),
        console_(console),
        linux_(loop.get_executor(), pool_, random_, clock_,
               options_with_way_out(std::move(options), request_.config, egress_gateway_)) {
    const core::SandboxId key = core::SandboxId::make(random_, clock_.now());
    place_ = places::PlaceRef{.key = key,
                              .driver = core::DriverKind::sandbox,
                              .sandbox_id = key,
                              .config = config_for_provider()};
  }

  Result<int> run() {
    life_.start("sandbox run", life());
    loop_.run();
    return std::move(outcome_);
  }

 private:
  Task<> life() {
    if (request_.terminal) signals_.add(SIGWINCH);
    beside_.start("signals", watch_signals());
    outcome_ = co_await carry_out();
    BERTH_CO_DO(co_await beside_.stop());
    const Result<> removed = co_await linux_.destroy(*place_);
    if (outcome_ && !removed) outcome_ = std::unexpected(removed.error());
    co_return co_await linux_.close();
  }

  Task<int> carry_out() {
    const places::AcquireRequest wanted_place{.lease = place_->clone()};
    BERTH_CO_TRY(const places::Acquired made, co_await linux_.acquire(wanted_place));
    BERTH_CO_DO(look_at_isolation(made.metadata));
    place_->metadata = made.metadata;
    beside_.start("renew", keep());
    places::Commands& inside = *linux_.abilities().commands;
    const std::optional<std::string> wanted =
        request_.cwd.empty() ? std::nullopt : std::optional{request_.cwd};
    BERTH_CO_TRY(const places::Workspace workspace, co_await inside.realize(*place_, wanted));
    const places::Command command = command_in(workspace);
    BERTH_CO_DO(co_await inside.start(*place_, command));
    started_ = true;
    if (interrupted_by_ != 0) BERTH_CO_DO(co_await inside.cancel(*place_, exec_id, grace_ms));
    if (request_.passes_stdin) beside_.start("stdin", feed());
    Streams streams{console_};
    const std::string id = exec_id;
    const Result<places::Ended> followed = co_await inside.follow(*place_, id, 0, streams);
    if (!streams.is_read()) co_return cli::exit_signal_base + SIGPIPE;
    BERTH_CO_TRY(const places::Ended ended, followed);
    if (ended.oom_kills > 0 && ended.exit_code != 0) {
      co_return fail(Errc::out_of_memory, "the sandbox ran out of its memory",
                     "give it more: --memory MIB");
    }
    if (ended.outcome == places::Outcome::timed_out) {
      co_return fail(Errc::timed_out,
                     "Timed out after " + std::to_string(command.timeout_ms.value_or(0)) + " ms",
                     "give it more time: --timeout TIME");
    }
    co_return tell_end(ended);
  }

  // A success with lost output counts as a failure, even with --quiet.
  int tell_end(const places::Ended& ended) const {
    const int own = exit_code_of(ended, interrupted_by_);
    const int code = own == 0 && ended.bytes_lost > 0 ? cli::exit_not_run : own;
    const auto remark = cli::remark_of_output(ended.bytes_lost, ended.bytes_over_limit);
    if (remark && (!request_.quiet || code != own)) {
      console_.err << "berth: " << *remark << (request_.terminal ? "\r\n" : "\n") << std::flush;
    }
    return code;
  }

  // Whether the limits are in force is checked here, using the flag names.
  bj::object config_for_provider() const {
    bj::object config = request_.config;
    if (!config.contains("minIsolation")) config["minIsolation"] = "weak";
    return config;
  }

  // Runs before a command would start with less isolation than requested.
  Result<> look_at_isolation(const bj::object& metadata) const {
    const bj::object* isolation = object_in(metadata, "isolation");
    if (isolation == nullptr) return {};
    BERTH_DO(cli::expect_limits_in_force(request_.config, *isolation));
    if (request_.quiet) return {};
    // A raw terminal does not return to the start of a line by itself.
    const char* end = request_.terminal ? "\r\n" : "\n";
    const std::vector<std::string> lines = cli::shortfalls_of(request_.config, *isolation);
    if (!lines.empty() && cli::were_told(lines, console_.variables)) {
      console_.err << "berth: isolation is weaker than it could be; 'berth doctor' says why" << end;
    } else {
      for (const std::string& line : lines) {
        console_.err << "berth: " << cli::printable(line) << end;
      }
    }
    console_.err.flush();
    return {};
  }

  places::Command command_in(const places::Workspace& workspace) const {
    places::Command command{
        .exec_id = exec_id, .argv = request_.argv, .cwd = workspace.cwd, .grace_ms = grace_ms};
    const auto set = [&](const std::string& name, std::string_view value) {
      command.environment.insert_or_assign(name, Secret{value});
    };
    set("PATH", workspace.path.value_or(std::string{places::usual_path}));
    set("HOME", workspace.home.value_or("/"));
    set("PWD", workspace.cwd);
    set("LANG", "C.UTF-8");
    if (workspace.scratch && workspace.scratch != "/tmp") set("TMPDIR", *workspace.scratch);
    if (request_.passes_stdin) command.input = places::StdinPipe{};
    if (request_.terminal) {
      command.terminal = cli::terminal_size(console_.in);
      const auto term = console_.variables.find("TERM");
      set("TERM", term != console_.variables.end() ? term->second : "xterm");
    }
    for (const auto& [name, value] : request_.variables) set(name, value);
    const auto limit = read_loosely<core::SandboxFields>(request_.config).timeout_ms;
    if (limit) command.timeout_ms = *limit;
    return command;
  }

  Task<> keep() {
    asio::steady_timer timer{loop_};
    while (true) {
      BERTH_CO_DO(co_await linux_.abilities().commands->renew(*place_, hold_ms));
      timer.expires_after(renew_every);
      const auto [stopped] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
      if (stopped) co_return Result<>{};
    }
  }

  Task<> feed() {
    BERTH_CO_TRY(cli::Readiness ready, cli::Readiness::open(loop_.get_executor(), console_.in,
                                                            cli::Readiness::For::reading));
    const std::string id = exec_id;
    while (true) {
      BERTH_CO_DO(co_await ready.wait());
      std::string bytes(input_bytes, '\0');
      const ssize_t got = ::read(console_.in, bytes.data(), bytes.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      // A command that has ended or closed its stdin needs no more input.
      if (got <= 0) {
        co_await linux_.abilities().commands->send(*place_, id, places::EndOfInput{});
        co_return Result<>{};
      }
      bytes.resize(static_cast<std::size_t>(got));
      if (!co_await linux_.abilities().commands->send(*place_, id, std::move(bytes)))
        co_return Result<>{};
    }
  }

  Task<> watch_signals() {
    const std::string id = exec_id;
    while (true) {
      const auto [error, number] =
          co_await signals_.async_wait(asio::as_tuple(asio::use_awaitable));
      if (error) co_return Result<>{};
      if (number == SIGWINCH) {
        if (started_ && request_.terminal) {
          co_await linux_.abilities().commands->send(*place_, id, cli::terminal_size(console_.in));
        }
        continue;
      }
      if (interrupted_by_ == 0) interrupted_by_ = number;
      if (started_) co_await linux_.abilities().commands->cancel(*place_, id, grace_ms);
    }
  }

  asio::io_context& loop_;
  cli::SandboxRequest request_;
  cli::Console& console_;
  SystemClock clock_;
  SystemRandom random_;
  asio::thread_pool pool_{1};
  places::EgressGateway egress_gateway_{loop_, pool_, clock_};
  places::Linux linux_;
  std::optional<places::PlaceRef> place_;
  // Set from the start, so that a signal never leaves a sandbox behind.
  asio::signal_set signals_{loop_, SIGINT, SIGTERM, SIGHUP};
  bool started_ = false;
  int interrupted_by_ = 0;  // the first signal to end
  Result<int> outcome_ = fail(Errc::bug, "no result");
  TaskGroup life_{loop_.get_executor()};
  TaskGroup beside_{loop_.get_executor()};
};

}  // namespace

Result<int> run_sandbox(cli::SandboxRequest request, cli::Console& console,
                        const cli::Settings& settings) {
  BERTH_TRY(const std::string keeper, cli::keeper_program(settings));
  BERTH_TRY(const WorkFolder folder, WorkFolder::make(console));
  std::optional<cli::RawTerminal> raw;
  if (request.terminal) {
    BERTH_TRY(cli::RawTerminal entered, cli::RawTerminal::enter(console.in));
    raw.emplace(std::move(entered));
  }
  std::vector<keeper::sandbox::Bind> binds = std::move(request.binds);
  asio::io_context loop{1};
  SandboxRun run{loop,
                 std::move(request),
                 console,
                 {.state_root = folder.path(),
                  .keeper_program = keeper,
                  .images_folder = settings.home + "/images",
                  .templates_folder = settings.home + "/templates",
                  .hold_life = places::HoldLife::of_process,
                  .binds = std::move(binds)}};
  return run.run();
}

}  // namespace berth::app
