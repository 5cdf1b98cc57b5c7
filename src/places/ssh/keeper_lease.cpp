#include "places/ssh/keeper_lease.hpp"

#include "keeper/protocol/text_record.hpp"
#include "keepers/keeper_values.hpp"
#include "keepers/output_records.hpp"
#include "places/ssh/quoting.hpp"

#include <utility>

namespace berth::places::ssh {
namespace {

constexpr std::string_view keeper_greeting = "#berth-keeper";
constexpr int keeper_tries = 3;
constexpr std::uint64_t stop_grace_ms = 5'000;
constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr std::size_t write_bytes = std::size_t{256} << 10;
constexpr std::chrono::seconds wardens_limit{20};
// A command may read its input at any time; the wait ends with the command at the latest.
constexpr keepers::KeeperLink::Limit input_limit{keeper::limits::deadline_ms};

Error with_disk(Error error) {
  if (!is_disk_full(error.message)) return error;
  return {Errc::remote_disk_full, std::move(error.message),
          "make room on the host, or choose a workspace path on another disk"};
}

// A keeper that does not exist has nothing to end.
bool is_over(Errc code) {
  return code == Errc::exec_not_found || code == Errc::lease_lapsed || code == Errc::process_lost;
}

std::uint64_t not_negative(std::int64_t number) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0));
}

struct Remains {
  std::uint64_t size = 0;
  bool has_output = false;
  std::string record;  // the last one in the journal
  std::string_view bytes;

  bool has_begun() const { return has_output || !record.empty(); }
};

// How it ended; empty while its record says that it runs.
Result<std::optional<keeper::Ended>> end_in(const Remains& remains, const std::string& exec_id) {
  if (remains.record.empty()) return std::nullopt;
  BERTH_TRY(keeper::Ended record,
            keeper::from_text<keeper::Ended>(remains.record, "exec " + exec_id));
  if (record.outcome == keeper::Outcome::running) return std::nullopt;
  return record;
}

Remains parse_remains(std::string_view output) {
  Remains found;
  constexpr std::string_view record = "#record ";
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size());
    const std::string_view line = output.substr(0, end);
    output.remove_prefix(std::min(end + 1, output.size()));
    if (line == "#") break;
    if (line.starts_with(record)) found.record.append(line.substr(record.size())).append("\n");
    if (line.starts_with("#size ")) {
      found.has_output = true;
      std::from_chars(line.data() + 6, line.data() + line.size(), found.size);
    }
  }
  found.bytes = output;
  return found;
}

}  // namespace

KeeperLease::KeeperLease(Connection::Use connection, TaskGroup& tasks, LeasePaths paths)
    : connection_(std::move(connection)),
      tasks_(tasks),
      paths_(std::move(paths)),
      opening_(connection_->executor()) {}

void KeeperLease::drop(const std::shared_ptr<Line>& broken) {
  if (line_ == broken) line_.reset();
}

Task<Session> KeeperLease::begin_session() {
  for (int left = keeper_tries;; --left) {
    BERTH_CO_TRY(const HostFacts place, co_await connection_->survey(paths_.workspace));
    if (!place.keeper) {
      co_return fail(Errc::remote_unsupported, name() + ": " + connection_->target().name() +
                                                   " cannot run a keeper: " + place.no_keeper);
    }
    const std::string keeper = shell_word(*place.keeper);
    std::string command = "test -x " + keeper;
    command.append(" && printf \"").append(keeper_greeting).append("\\n\" && exec ");
    command.append(keeper).append(" serve-stdio ").append(shell_word(paths_.root()));
    Result<Session> session =
        co_await connection_->begin_command(command, std::string{keeper_greeting});
    if (session || session.error().code != Errc::ssh_failed || left == 1) co_return session;
    // The cached facts about the place are out of date: files were removed there.
    connection_->forget(paths_.workspace);
  }
}

Task<std::shared_ptr<KeeperLease::Line>> KeeperLease::line(keeper::OpenHow how) {
  BERTH_CO_TRY(const AsyncMutex::Lock lock, co_await opening_.lock());
  if (line_ && !line_->link.broken()) co_return line_;
  line_.reset();
  BERTH_CO_TRY(Session session, co_await begin_session());
  keepers::KeeperLink link{connection_->executor(), tasks_,
                           keepers::KeeperLink::Ends{
                               .in = session.process().release_output(),
                               .out = session.process().release_input(),
                               .name = name(),
                               .open = keeper::Open{.keeper_id = paths_.lease_id, .how = how},
                           }};
  line_ = std::make_shared<Line>(std::move(session), std::move(link));
  co_return line_;
}

Task<KeeperLease::Found> KeeperLease::look() {
  const RunLimits limits{.time = connection_->options().script_limit};
  BERTH_CO_TRY(const ScriptEnd end, co_await connection_->ask(life_script(paths_), limits));
  const std::string life = fact(end.output, "life").value_or("");
  Found found{.why = fact(end.output, "why").value_or("")};
  if (life == "alive") found.life = Life::alive;
  if (life == "ended") found.life = Life::ended;
  if (life == "dead") found.life = Life::dead;
  co_return found;
}

Error KeeperLease::over(const Found& found) const {
  switch (found.life) {
    case Life::ended:
      return {Errc::lease_lapsed, name() + ": its keeper has ended: " + found.why,
              "what it ran has ended too; begin a new lease"};
    case Life::dead:
      return {Errc::process_lost, name() + ": its keeper was killed",
              "what it ran has ended too; begin a new lease"};
    case Life::gone: return {Errc::exec_not_found, name() + ": the host has nothing of it"};
    case Life::alive: break;
  }
  return {Errc::keeper_unreachable, name() + ": its keeper lives but does not answer"};
}

template <class Answer, class Request>
Task<Answer> KeeperLease::ask(const Request& request, Limit limit, keeper::OpenHow how) {
  for (int left = keeper_tries;; --left) {
    BERTH_CO_TRY(const std::shared_ptr<Line> open, co_await line(how));
    Result<Answer> answer = co_await open->link.template ask<Answer>(request, limit);
    if (answer) open->answered = true;
    if (answer) co_return answer;
    if (!open->link.broken()) co_return std::unexpected(with_disk(std::move(answer).error()));
    drop(open);
    // A line that had worked has just broken. A line that never worked was refused, by a keeper
    // that is over.
    if (!open->answered) {
      if (!is_about_the_connection(answer.error().code)) {
        co_return std::unexpected(with_disk(std::move(answer).error()));
      }
      BERTH_CO_TRY(const Found found, co_await look());
      const bool may_start = found.life == Life::gone && how != keeper::OpenHow::attach;
      if (found.life != Life::alive && !may_start) co_return std::unexpected(over(found));
    }
    if (left == 1) co_return std::unexpected(std::move(answer).error());
  }
}

template <class Request>
Task<> KeeperLease::ask_once(const Request& request, Limit limit) {
  BERTH_CO_TRY(const std::shared_ptr<Line> open, co_await line(keeper::OpenHow::attach));
  BERTH_CO_DO(co_await open->link.template ask<keeper::Done>(request, limit));
  open->answered = true;
  co_return Result<>{};
}

Task<> KeeperLease::open() {
  // An unrenewed keeper expires after this time anyway, so this changes nothing.
  const keeper::Renew renew{.deadline_ms = keeper::limits::first_deadline_ms};
  BERTH_CO_DO(co_await ask<keeper::Done>(renew, keepers::KeeperLink::usual_limit,
                                         keeper::OpenHow::start_or_attach));
  co_return Result<>{};
}

Task<Started> KeeperLease::start(const Command& command) {
  const keepers::ExecRequest request{command};
  const Result<keeper::Started> started = co_await ask<keeper::Started>(
      request.exec(), keepers::KeeperLink::usual_limit, keeper::OpenHow::start_or_attach);
  if (started) co_return keepers::started_of(*started);
  // The keeper compares the whole command, which contains a new token after a restart.
  if (started.error().code == Errc::exec_id_reused || is_over(started.error().code)) {
    co_return co_await started_before(command.exec_id, started.error());
  }
  co_return std::unexpected(started.error());
}

Task<Started> KeeperLease::started_before(std::string exec_id, Error otherwise) {
  if (otherwise.code == Errc::exec_id_reused) {
    BERTH_CO_TRY(const keeper::Listing listing,
                 co_await ask<keeper::Listing>(keeper::List{}, keepers::KeeperLink::usual_limit));
    for (const keeper::Listed& listed : listing.live) {
      if (listed.exec_id != exec_id) continue;
      co_return keepers::started_of({.pid = listed.pid, .started_us = listed.started_us});
    }
  }
  const RunLimits limits{.time = connection_->options().script_limit};
  std::string script = remains_script(paths_, exec_id, 0, 0);
  BERTH_CO_TRY(const ScriptEnd end, co_await connection_->ask(std::move(script), limits));
  const Remains found = parse_remains(end.output);
  if (!found.has_begun()) co_return std::unexpected(std::move(otherwise));
  BERTH_CO_TRY(const std::optional<keeper::Ended> record, end_in(found, exec_id));
  if (!record) co_return Started{};
  BERTH_CO_TRY(const Ended ended, keepers::ended_of(*record));
  co_return Started{.pid = record->pid, .started_at = ended.started_at};
}

Task<Ended> KeeperLease::follow(std::string exec_id, std::uint64_t offset, OutputTaker& taker) {
  FollowedOutput output{taker, offset};
  Patience patience{connection_->options().reattach_limit};
  while (true) {
    const std::uint64_t before = output.offset();
    Result<Ended> end = co_await follow_once(exec_id, output);
    if (end) co_return end;
    if (output.refused()) co_return std::unexpected(*output.refused());
    if (!is_about_the_connection(end.error().code)) co_return end;
    if (output.offset() != before) patience.progress();
    BERTH_CO_TRY(const bool again, co_await patience.wait());
    if (!again) {
      co_return fail(Errc::ssh_unreachable,
                     name() + ": gave up to reach its keeper: " + end.error().message,
                     "the command goes on until the lease lapses; when the host answers again, "
                     "follow it again");
    }
  }
}

Task<Ended> KeeperLease::follow_once(const std::string& exec_id, FollowedOutput& output) {
  BERTH_CO_TRY(const std::shared_ptr<Line> open, co_await line(keeper::OpenHow::attach));
  Result<Ended> end = co_await open->link.follow(exec_id, output.offset(), output);
  if (end) open->answered = true;
  if (end || output.refused() || !open->link.broken()) co_return end;
  drop(open);
  if (!is_about_the_connection(end.error().code)) co_return end;
  BERTH_CO_TRY(const Found found, co_await look());
  if (found.life == Life::alive) co_return end;
  if (found.life == Life::gone) co_return std::unexpected(over(found));
  co_return co_await read_remains(exec_id, output, found.life);
}

Task<Ended> KeeperLease::read_remains(const std::string& exec_id, FollowedOutput& output,
                                      Life life) {
  const RunLimits limits{.time = connection_->options().script_limit,
                         .output_bytes = 2 * piece_bytes};
  Patience patience{wardens_limit};
  while (true) {
    std::string script = remains_script(paths_, exec_id, output.offset(), piece_bytes);
    BERTH_CO_TRY(const ScriptEnd end, co_await connection_->ask(std::move(script), limits));
    const Remains found = parse_remains(end.output);
    if (!found.has_begun()) {
      co_return fail(Errc::exec_not_found, name() + ": exec " + exec_id + " was never started");
    }
    BERTH_CO_TRY(const keepers::CutRecords cut, keepers::cut_records(found.bytes, output.offset()));
    if (!cut.pieces.empty()) {
      BERTH_CO_DO(co_await output.take(cut.pieces));
      continue;
    }
    BERTH_CO_TRY(const std::optional<keeper::Ended> record, end_in(found, exec_id));
    if (record) co_return keepers::ended_of(*record);
    // The wardens of a killed keeper end their commands and record the outcome, which takes a
    // while.
    Result<bool> again{life == Life::dead};
    if (*again) again = co_await patience.wait();
    if (!again) co_return std::unexpected(std::move(again).error());
    if (!*again) co_return Ended{.outcome = Outcome::lost};
  }
}

Task<> KeeperLease::write(const std::string& exec_id, std::string bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += write_bytes) {
    const keeper::Write piece{.exec_id = exec_id, .bytes = bytes.substr(at, write_bytes)};
    BERTH_CO_DO(co_await ask_once(piece, input_limit));
  }
  co_return Result<>{};
}

Task<> KeeperLease::send(std::string exec_id, Input input) {
  if (auto* bytes = std::get_if<std::string>(&input)) {
    co_return co_await write(exec_id, std::move(*bytes));
  }
  if (const auto* size = std::get_if<core::TerminalSize>(&input)) {
    const keeper::Resize resize = keepers::resize_of(exec_id, *size);
    co_return co_await ask_once(resize, keepers::KeeperLink::usual_limit);
  }
  if (const auto* signal = std::get_if<SignalNumber>(&input)) {
    const keeper::Signal request{.exec_id = exec_id, .number = signal->number};
    co_return co_await ask_once(request, keepers::KeeperLink::usual_limit);
  }
  const keeper::CloseStdin close{.exec_id = exec_id};
  co_return co_await ask_once(close, keepers::KeeperLink::usual_limit);
}

Task<> KeeperLease::cancel(std::string exec_id, std::int64_t grace_ms) {
  const keeper::Cancel cancel{.exec_id = exec_id, .grace_ms = not_negative(grace_ms)};
  const Limit limit = Limit{grace_ms} + keepers::KeeperLink::usual_limit;
  const Result<keeper::Ended> ended = co_await ask<keeper::Ended>(cancel, limit);
  if (ended || is_over(ended.error().code)) co_return Result<>{};
  co_return std::unexpected(ended.error());
}

Task<> KeeperLease::renew(std::int64_t deadline_ms) {
  const keeper::Renew renew{.deadline_ms = not_negative(deadline_ms)};
  BERTH_CO_DO(co_await ask<keeper::Done>(renew, keepers::KeeperLink::usual_limit));
  co_return Result<>{};
}

Task<> KeeperLease::detach() {
  const std::shared_ptr<Line> open = std::exchange(line_, nullptr);
  if (!open) co_return Result<>{};
  BERTH_CO_DO(co_await open->link.close());
  co_return co_await open->session.end();
}

Task<> KeeperLease::remove() {
  // If the line is open, the keeper is asked directly, which is quicker than a script.
  if (const std::shared_ptr<Line> open = line_; open && !open->link.broken()) {
    const keeper::Stop stop{.grace_ms = stop_grace_ms};
    const Limit limit = Limit{stop_grace_ms} + keepers::KeeperLink::usual_limit;
    // A keeper that does not answer is killed by the script below. One that has answered is
    // exiting, and need not be waited for.
    static_cast<void>(co_await open->link.ask<keeper::Done>(stop, limit));
  }
  BERTH_CO_DO(co_await detach());
  const RunLimits limits{.time = connection_->options().script_limit};
  BERTH_CO_TRY(const ScriptEnd end, co_await connection_->ask(remove_script(paths_), limits));
  if (end.status == 0) co_return Result<>{};
  co_return std::unexpected(why_not_done(Errc::lease_release_failed,
                                         name() + ": " + paths_.folder() + " cannot be removed",
                                         remarks(end.output), "remove it by hand"));
}

}  // namespace berth::places::ssh
