#include "places/ssh/shell_lease.hpp"

#include "base/text.hpp"
#include "keeper/protocol/protocol.hpp"
#include "keepers/keeper_values.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <charconv>
#include <utility>

namespace berth::places::ssh {
namespace {

constexpr std::size_t shell_piece_bytes = std::size_t{256} << 10;
constexpr std::chrono::milliseconds shortest_pause{50};
constexpr std::chrono::milliseconds shell_longest_pause{1'000};
constexpr std::chrono::milliseconds kill_limit{20'000};
constexpr std::int64_t first_deadline_ms = keeper::limits::first_deadline_ms;
constexpr int signals_max = 64;

template <class Number>
Number number_in(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Task<> pause(std::chrono::milliseconds length) {
  asio::steady_timer timer{co_await asio::this_coro::executor, length};
  const auto [error] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  if (error) co_return fail(Errc::cancelled, "the wait was stopped");
  co_return Result<>{};
}

Time now() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return Time{std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count()};
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

// The result of reading the files once.
struct ShellLease::Look {
  std::string state;
  std::uint64_t out_size = 0;
  std::uint64_t err_size = 0;
  std::uint64_t limit = 0;
  std::string bytes;
  std::size_t out_bytes = 0;  // of `bytes`; the rest is from err

  bool is_running() const { return state == "running"; }
};

ShellLease::ShellLease(Connection::Use connection, LeasePaths paths)
    : connection_(std::move(connection)), paths_(std::move(paths)) {}

Task<ScriptEnd> ShellLease::ask(std::string script) {
  const RunLimits limits{.time = connection_->options().script_limit,
                         .output_bytes = 2 * shell_piece_bytes + (std::size_t{64} << 10)};
  Result<ScriptEnd> end = co_await connection_->ask(script, limits);
  ::explicit_bzero(script.data(), script.size());
  co_return end;
}

Task<> ShellLease::open() {
  return renew(first_deadline_ms);
}

Error ShellLease::refusal(std::string_view what, std::string_view code) const {
  const std::string subject = name() + ": " + std::string{what};
  if (code == "working_directory_missing") {
    return {Errc::working_directory_missing, subject + ": its working directory is not there",
            "create it on the host"};
  }
  if (code == "command_not_executable") {
    return {Errc::command_not_executable, subject + " is not executable",
            "chmod +x, or call it with its interpreter"};
  }
  return {Errc::command_not_found, subject + " was not found",
          "install it on the host, or set PATH"};
}

Task<Started> ShellLease::start(const Command& command) {
  const keepers::ExecRequest request{command};
  const keeper::Exec& exec = request.exec();
  BERTH_CO_DO(keeper::check(exec));
  if (exec.has_terminal()) {
    co_return fail(Errc::execution_unsupported,
                   name() + ": " + connection_->target().name() +
                       " has no keeper, and without one there are no terminals",
                   "run the command without a terminal");
  }
  if (exec.stdin_kind == keeper::Stdin::bytes) BERTH_CO_DO(co_await bring_input(exec));
  BERTH_CO_TRY(const ScriptEnd launched, co_await ask(launch_script(paths_, exec)));
  if (launched.status != 0) {
    const bool cannot = launched.status == script_status::cannot_run;
    co_return std::unexpected(
        why_not_done(cannot ? Errc::remote_unsupported : Errc::command_start_failed,
                     name() + ": exec " + exec.exec_id, remarks(launched.output)));
  }
  if (exec.stdin_kind == keeper::Stdin::pipe) BERTH_CO_DO(co_await open_feed(exec.exec_id));
  BERTH_CO_TRY(const ScriptEnd end, co_await ask(launched_script(paths_, exec.exec_id)));
  if (const auto refused = fact(end.output, "refused")) {
    co_return std::unexpected(refusal("command " + in_quotes(exec.argv[0]), *refused));
  }
  if (end.status != 0) {
    co_return std::unexpected(why_not_done(Errc::command_start_failed,
                                           name() + ": exec " + exec.exec_id, remarks(end.output)));
  }
  co_return Started{
      .pid = number_in<std::int64_t>(fact(end.output, "pid").value_or("")),
      .started_at = Time{number_in<std::int64_t>(fact(end.output, "at").value_or("")) * 1000}};
}

Task<> ShellLease::bring_input(const keeper::Exec& exec) {
  BERTH_CO_TRY(Session session, co_await connection_->begin(input_script(paths_, exec.exec_id)));
  const RunLimits limits{.time = connection_->options().upload_limit};
  BERTH_CO_TRY(const Finished end, co_await finish(session.process(), exec.stdin_bytes, limits));
  const auto arrived = number_in<std::uint64_t>(fact(end.out, "bytes").value_or(""));
  if (end.status.is_success() && arrived == exec.stdin_bytes.size()) co_return Result<>{};
  co_return std::unexpected(why_not_done(
      Errc::command_start_failed, name() + ": exec " + exec.exec_id + ": stdin", remarks(end.out)));
}

Task<> ShellLease::open_feed(std::string exec_id) {
  if (feeds_.contains(exec_id)) co_return Result<>{};
  BERTH_CO_TRY(Session session, co_await connection_->begin(feed_script(paths_, exec_id)));
  feeds_.emplace(exec_id, std::make_shared<Session>(std::move(session)));
  co_return Result<>{};
}

Task<> ShellLease::feed(const std::string& exec_id, std::string bytes) {
  BERTH_CO_TRY(const Look found, co_await look(exec_id, {}));
  if (!found.is_running()) {
    co_return fail(Errc::exec_not_found, name() + ": exec " + exec_id + ": does not run");
  }
  BERTH_CO_DO(co_await open_feed(exec_id));
  const std::shared_ptr<Session> session = feeds_.at(exec_id);
  const auto [error, sent] = co_await asio::async_write(
      session->process().input(), asio::buffer(bytes), asio::as_tuple(asio::use_awaitable));
  if (!error) co_return Result<>{};
  feeds_.erase(exec_id);
  Error why = co_await session->why_over();
  co_return std::unexpected(std::move(why));
}

Task<> ShellLease::send(std::string exec_id, Input input) {
  if (auto* bytes = std::get_if<std::string>(&input)) {
    co_return co_await feed(exec_id, std::move(*bytes));
  }
  if (const auto* signal = std::get_if<SignalNumber>(&input)) {
    BERTH_CO_TRY(const ScriptEnd end, co_await ask(signal_script(paths_, exec_id, signal->number)));
    if (!fact(end.output, "absent")) co_return Result<>{};
    co_return fail(Errc::exec_not_found, name() + ": exec " + exec_id + ": does not run");
  }
  if (std::holds_alternative<core::TerminalSize>(input)) {
    co_return fail(Errc::execution_unsupported, name() + ": exec " + exec_id + ": has no terminal");
  }
  // All input must arrive before end-of-input: the session is closed, and its end awaited.
  if (const auto found = feeds_.find(exec_id); found != feeds_.end()) {
    const std::shared_ptr<Session> session = std::move(found->second);
    feeds_.erase(found);
    const KillTimer deadline{connection_->executor(), session->process(), kill_limit};
    session->process().close_input();
    BERTH_CO_DO(co_await session->process().wait());
  }
  BERTH_CO_DO(co_await ask(end_of_input_script(paths_, exec_id)));
  co_return Result<>{};
}

Task<ShellLease::Look> ShellLease::look(const std::string& exec_id, ShellOffset from) {
  BERTH_CO_TRY(ScriptEnd end, co_await ask(poll_script(paths_, exec_id, from, shell_piece_bytes)));
  const std::size_t head = end.output.find("#\n");
  if (head == end.output.npos) {
    co_return fail(Errc::ssh_failed, name() + ": the host did not understand a script");
  }
  const std::string_view facts = std::string_view{end.output}.substr(0, head);
  const auto number = [&](std::string_view key) {
    return number_in<std::uint64_t>(fact(facts, key).value_or("0"));
  };
  Look look{.state = fact(facts, "state").value_or("absent"),
            .out_size = number("out"),
            .err_size = number("err"),
            .limit = number("limit"),
            .bytes = end.output.substr(head + 2)};
  const std::uint64_t unread = look.out_size - std::min(from.out, look.out_size);
  look.out_bytes = std::min<std::size_t>({unread, shell_piece_bytes, look.bytes.size()});
  co_return look;
}

// Passes on new output, within the command's limit. False if there was none.
Task<bool> ShellLease::take(Look& look, FollowedOutput& output) {
  ShellOffset at = ShellOffset::unpack(output.offset());
  const std::string_view bytes = look.bytes;
  std::uint64_t room = look.limit - std::min(at.out + at.err, look.limit);
  std::vector<OutputPiece> pieces;
  const auto add = [&](OutputKind kind, std::string_view part, std::uint64_t& position) {
    part = part.substr(0, std::min({part.size(), static_cast<std::size_t>(room),
                                    ShellOffset::stream_bytes_max - position}));
    if (part.empty()) return;
    OutputPiece piece{.offset = at.pack(), .kind = kind, .at = now(), .bytes = part};
    position += part.size();
    room -= part.size();
    piece.next_offset = at.pack();
    pieces.push_back(piece);
  };
  add(OutputKind::out, bytes.substr(0, look.out_bytes), at.out);
  add(OutputKind::err, bytes.substr(look.out_bytes), at.err);
  if (pieces.empty()) co_return false;
  BERTH_CO_DO(co_await output.take(pieces));
  co_return true;
}

Result<Ended> ShellLease::end_of(const std::string& exec_id, const Look& look) const {
  const std::vector<std::string_view> words = words_of(look.state);
  if (words.empty() || look.state == "absent") {
    return fail(Errc::exec_not_found, name() + ": exec " + exec_id + " was never started");
  }
  if (look.state == "lost") return Ended{.outcome = Outcome::lost, .ended_at = now()};
  if (words.size() != 4) return std::unexpected(refusal("exec " + exec_id, words[0]));
  const auto status = number_in<std::int64_t>(words[1]);
  const std::uint64_t said = look.out_size + look.err_size;
  Ended ended{.outcome = parse_name<Outcome>(words[0]).value_or(Outcome::lost),
              .started_at = Time{number_in<std::int64_t>(words[2]) * 1000},
              .ended_at = Time{number_in<std::int64_t>(words[3]) * 1000},
              .bytes_over_limit = static_cast<std::int64_t>(said - std::min(said, look.limit))};
  // The shell distinguishes a signal from a status only by its value.
  if (ended.outcome == Outcome::lost) return ended;
  const bool by_signal = status > 128 && status <= 128 + signals_max;
  if (by_signal) ended.signal = keepers::signal_name(static_cast<int>(status - 128));
  if (!by_signal) ended.exit_code = status;
  if (by_signal && ended.outcome == Outcome::exited) ended.outcome = Outcome::signaled;
  return ended;
}

Task<Ended> ShellLease::follow(std::string exec_id, std::uint64_t offset, OutputTaker& taker) {
  FollowedOutput output{taker, offset};
  Patience patience{connection_->options().reattach_limit};
  std::chrono::milliseconds length = shortest_pause;
  while (true) {
    Result<Look> found = co_await look(exec_id, ShellOffset::unpack(output.offset()));
    if (!found) {
      if (!is_about_the_connection(found.error().code)) {
        co_return std::unexpected(std::move(found).error());
      }
      BERTH_CO_TRY(const bool again, co_await patience.wait());
      if (!again) co_return std::unexpected(std::move(found).error());
      continue;
    }
    patience.progress();
    BERTH_CO_TRY(const bool had_news, co_await take(*found, output));
    if (had_news) {
      length = shortest_pause;
      continue;
    }
    if (!found->is_running()) co_return end_of(exec_id, *found);
    BERTH_CO_DO(co_await pause(length));
    length = std::min(length * 2, shell_longest_pause);
  }
}

Task<> ShellLease::cancel(std::string exec_id, std::int64_t grace_ms) {
  BERTH_CO_DO(co_await ask(stop_script(paths_, exec_id, std::max<std::int64_t>(grace_ms, 0))));
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::milliseconds{grace_ms} + kill_limit;
  while (std::chrono::steady_clock::now() < until) {
    BERTH_CO_TRY(const Look found, co_await look(exec_id, {}));
    if (!found.is_running()) co_return Result<>{};
    BERTH_CO_DO(co_await pause(shortest_pause * 2));
  }
  co_return fail(Errc::timed_out, name() + ": exec " + exec_id + " does not end");
}

Task<> ShellLease::renew(std::int64_t deadline_ms) {
  BERTH_CO_TRY(const ScriptEnd end, co_await ask(renew_script(paths_, deadline_ms)));
  if (end.status == 0) co_return Result<>{};
  co_return std::unexpected(
      why_not_done(Errc::lease_lapsed, name() + ": cannot be renewed", remarks(end.output)));
}

Task<> ShellLease::detach() {
  const auto feeds = std::exchange(feeds_, {});
  for (const auto& [exec_id, session] : feeds) BERTH_CO_DO(co_await session->end());
  co_return Result<>{};
}

Task<> ShellLease::remove() {
  BERTH_CO_DO(co_await detach());
  BERTH_CO_TRY(const ScriptEnd end, co_await ask(remove_script(paths_)));
  if (end.status == 0) co_return Result<>{};
  co_return std::unexpected(why_not_done(Errc::lease_release_failed,
                                         name() + ": " + paths_.folder() + " cannot be removed",
                                         remarks(end.output), "remove it by hand"));
}

}  // namespace berth::places::ssh
