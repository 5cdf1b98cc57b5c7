#include "keepers/keepers.hpp"

#include "base/async/event.hpp"
#include "base/async/offload.hpp"
#include "base/fault_point.hpp"
#include "base/files.hpp"
#include "base/remove_tree.hpp"
#include "keeper/protocol/exec_journal.hpp"
#include "keepers/keeper_process.hpp"
#include "keepers/keeper_values.hpp"
#include "keepers/output_records.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace berth::keepers {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t input_piece_bytes = std::size_t{256} << 10;
constexpr std::uint64_t release_grace_ms = 5000;
constexpr KeeperLink::Limit death_limit = 30s;
// Longer than a warden may take to kill its tree after its keeper was killed.
constexpr auto wardens_limit = 20s;
constexpr auto look_again_after = 20ms;

KeeperLink::Limit with_grace(std::uint64_t grace_ms) {
  return KeeperLink::usual_limit +
         std::chrono::milliseconds{std::min(grace_ms, keeper::limits::grace_ms)};
}

std::unexpected<Error> not_found(const std::string& exec_id) {
  return fail(Errc::exec_not_found, "exec " + exec_id + ": was never started here");
}

using Names = std::vector<std::string>;

// Records how far its taker has read, so that following can continue on another connection.
class Position final : public OutputTaker {
 public:
  Position(OutputTaker& taker, std::uint64_t offset) : taker_(taker), offset_(offset) {}

  Task<> take(std::span<const OutputPiece> pieces) override {
    Result<> taken = co_await taker_.take(pieces);
    refused_ = !taken;
    if (taken && !pieces.empty()) offset_ = pieces.back().next_offset;
    co_return taken;
  }
  std::uint64_t offset() const { return offset_; }
  bool is_refused() const { return refused_; }

 private:
  OutputTaker& taker_;
  std::uint64_t offset_;
  bool refused_ = false;
};

}  // namespace

struct Keepers::Held {
  explicit Held(const asio::any_io_executor& executor) : opened(executor) {}

  Link link;
  bool opening = false;
  Event opened;
};

// One at a time: if two callers start a lease's first command, only one may start its keeper.
class Keepers::Opening {
 public:
  explicit Opening(std::shared_ptr<Held> held) : held_(std::move(held)) { held_->opening = true; }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;
  ~Opening() {
    held_->opening = false;
    held_->opened.notify();
  }

 private:
  std::shared_ptr<Held> held_;
};

Keepers::Keepers(asio::any_io_executor executor, asio::thread_pool& pool, KeeperOptions options)
    : executor_(executor), pool_(pool), options_(std::move(options)), tasks_(std::move(executor)) {}

std::string Keepers::name_of(const std::string& id) const {
  return options_.noun + " " + id;
}

KeptFolder Keepers::folder_of(const std::string& id) const {
  return {.path = options_.state_root + "/" + id};
}

KeeperLink Keepers::make_link(const std::string& id, Fd socket) {
  return {executor_, tasks_, {.in = std::move(socket), .name = name_of(id)}};
}

Task<Keepers::Reached> Keepers::reach(std::string id, IfNone if_none) {
  std::shared_ptr<Held>& place = held_[id];
  if (!place) place = std::make_shared<Held>(executor_);
  const std::shared_ptr<Held> held = place;
  while (held->opening) BERTH_CO_DO(co_await held->opened.wait());
  if (held->link && !held->link->broken()) co_return Reached{.link = held->link};

  const Opening opening{held};
  held->link.reset();
  BERTH_CO_TRY(
      KeeperAt at,
      co_await offload(
          pool_, [folder = folder_of(id), if_none, options = options_]() -> Result<KeeperAt> {
            if (if_none == IfNone::tell) return find_keeper(folder);
            return find_or_start_keeper(folder, options.keeper_program, options.keeper_environment,
                                        options.prefork.get());
          }));
  if (at.child != 0) tasks_.start("keeper.reap", reap(executor_, at.child));
  if (at.is_new) fault_point("keeper.started");
  if (at.socket) {
    held->link = std::make_shared<KeeperLink>(make_link(id, std::move(at.socket)));
    co_return Reached{.link = held->link};
  }
  held_.erase(id);
  co_return Reached{.gone = std::move(at.gone)};
}

Task<> Keepers::pause() {
  Event event{executor_};
  co_return co_await event.wait_until(std::chrono::steady_clock::now() + look_again_after);
}

Task<Started> Keepers::start(std::string id, const Command& command, IfNone if_none,
                             PlaceRules rules) {
  const ExecRequest request{command, rules};
  const auto started =
      co_await ask<keeper::Started>(id, request.exec(), KeeperLink::usual_limit, if_none);
  if (started && *started) co_return started_of(**started);
  // The keeper compares the whole command, which contains a new token after a restart.
  const bool is_known = !started && started.error().code == Errc::exec_id_reused;
  if (!started && !is_known) co_return std::unexpected(started.error());
  co_return co_await started_before(std::move(id), command.exec_id);
}

Task<Started> Keepers::started_before(std::string id, std::string exec_id) {
  const KeptFolder folder = folder_of(id);
  BERTH_CO_TRY(const Reached reached, co_await reach(id, IfNone::tell));
  BERTH_CO_TRY(const CommandFiles files, co_await offload(pool_, [folder, exec_id] {
                 return look_at_command(folder, exec_id);
               }));
  if (files.ended) {
    BERTH_CO_TRY(const Ended ended, ended_of(*files.ended));
    co_return Started{.pid = files.ended->pid, .started_at = ended.started_at};
  }
  if (reached.link) {
    BERTH_CO_TRY(const keeper::Listing listing,
                 co_await reached.link->ask<keeper::Listing>(keeper::List{}));
    for (const keeper::Listed& listed : listing.live) {
      if (listed.exec_id != exec_id) continue;
      co_return started_of({.pid = listed.pid, .started_us = listed.started_us});
    }
    co_return fail(Errc::exec_id_reused,
                   "exec " + exec_id + ": the id was used for another command");
  }
  if (!files.has_begun || !reached.gone) {
    co_return std::unexpected(why_gone(name_of(id), reached.gone));
  }
  co_return Started{.started_at = Time{reached.gone->identity.created_us / 1000}};
}

Task<Ended> Keepers::follow(std::string id, const std::string& exec_id, std::uint64_t offset,
                            OutputTaker& taker) {
  const KeptFolder folder = folder_of(id);
  Position position{taker, offset};
  for (int attempt = 1;; ++attempt) {
    // On a separate connection: a slow taker must not delay the answers to other requests.
    BERTH_CO_TRY(KeeperAt at, co_await offload(pool_, [folder] { return find_keeper(folder); }));
    if (!at.socket) break;
    KeeperLink link = make_link(id, std::move(at.socket));
    Result<Ended> ended = co_await link.follow(exec_id, position.offset(), position);
    // A cancelled task cannot await any more; the link then closes by itself.
    if (!ended && ended.error().code == Errc::cancelled) co_return ended;
    BERTH_CO_DO(co_await link.close());
    const bool is_broken = !ended && ended.error().code == Errc::keeper_unreachable;
    if (!is_broken || position.is_refused() || attempt == 3) co_return ended;
  }
  co_return co_await follow_files(folder, exec_id, position.offset(), taker);
}

Task<> Keepers::forget_output(std::string id, std::string exec_id) {
  const KeptFolder folder = folder_of(id);
  co_return co_await offload(pool_, [folder, exec_id] { return remove_output(folder, exec_id); });
}

// The keeper has ended, so only its files are left.
Task<Ended> Keepers::follow_files(KeptFolder folder, std::string exec_id, std::uint64_t offset,
                                  OutputTaker& taker) {
  BERTH_CO_TRY(const KeeperAt at,
               co_await offload(pool_, [folder] { return find_keeper(folder); }));
  if (!at.gone) co_return not_found(exec_id);
  BERTH_CO_DO(co_await wait_for_wardens(folder, *at.gone));
  BERTH_CO_TRY(const CommandFiles files, co_await offload(pool_, [folder, exec_id] {
                 return look_at_command(folder, exec_id);
               }));
  if (!files.has_begun) co_return not_found(exec_id);
  BERTH_CO_DO(co_await hand_over_file(folder, exec_id, offset, taker));
  if (files.ended) co_return ended_of(*files.ended);
  co_return Ended{.outcome = Outcome::lost,
                  .started_at = Time{at.gone->identity.created_us / 1000},
                  .ended_at = Time{keeper::wall_clock_us() / 1000}};
}

Task<> Keepers::hand_over_file(KeptFolder folder, std::string exec_id, std::uint64_t offset,
                               OutputTaker& taker) {
  while (true) {
    BERTH_CO_TRY(const std::string bytes, co_await offload(pool_, [folder, exec_id, offset] {
                   return read_output(folder, exec_id, offset);
                 }));
    BERTH_CO_TRY(const CutRecords cut, cut_records(bytes, offset));
    // The rest of the file is a record that its writer did not finish.
    if (cut.pieces.empty()) co_return Result<>{};
    BERTH_CO_DO(co_await taker.take(cut.pieces));
    offset += cut.used;
  }
}

// When a keeper is killed, the wardens of its commands kill their trees and write the exit records.
// There is no event for that, so the folder is polled.
Task<> Keepers::wait_for_wardens(KeptFolder folder, keeper::FoundKeeper gone) {
  if (gone.life != keeper::Life::dead || !is_of_this_boot(gone.identity)) co_return Result<>{};
  if (options_.after_kill) {
    co_return co_await offload(pool_,
                               [end = options_.after_kill, gone] { return end(gone.identity); });
  }
  const auto until = std::chrono::steady_clock::now() + wardens_limit;
  Event pause{executor_};
  while (std::chrono::steady_clock::now() < until) {
    const bool all_written = co_await offload(pool_, [folder] {
      const auto execs = keeper::read_execs(folder.keeper());
      return execs && std::ranges::none_of(*execs, [](const auto& exec) {
               return exec.second.outcome == keeper::Outcome::running;
             });
    });
    if (all_written) break;
    BERTH_CO_DO(co_await pause.wait_until(std::chrono::steady_clock::now() + look_again_after));
  }
  co_return Result<>{};
}

Task<> Keepers::send(std::string id, const std::string& exec_id, Input input) {
  // The command may read its input at any time. The wait ends with the command at the latest.
  constexpr KeeperLink::Limit as_long_as_it_lives{keeper::limits::deadline_ms};
  if (const auto* bytes = std::get_if<std::string>(&input)) {
    for (std::size_t at = 0; at < bytes->size(); at += input_piece_bytes) {
      const keeper::Write write{.exec_id = exec_id, .bytes = bytes->substr(at, input_piece_bytes)};
      BERTH_CO_DO(co_await tell(id, exec_id, write, as_long_as_it_lives));
    }
    co_return Result<>{};
  }
  if (const auto* size = std::get_if<core::TerminalSize>(&input)) {
    const keeper::Resize resize = resize_of(exec_id, *size);
    co_return co_await tell(id, exec_id, resize, KeeperLink::usual_limit);
  }
  if (const auto* signal = std::get_if<SignalNumber>(&input)) {
    const keeper::Signal message{.exec_id = exec_id, .number = signal->number};
    co_return co_await tell(id, exec_id, message, KeeperLink::usual_limit);
  }
  const keeper::CloseStdin end{.exec_id = exec_id};
  co_return co_await tell(id, exec_id, end, KeeperLink::usual_limit);
}

template <class Request>
Task<> Keepers::tell(std::string id, const std::string& exec_id, const Request& request,
                     KeeperLink::Limit limit) {
  BERTH_CO_TRY(const std::optional<keeper::Done> done,
               co_await ask<keeper::Done>(id, request, limit));
  if (!done) co_return not_found(exec_id);
  co_return Result<>{};
}

Task<> Keepers::cancel(std::string id, const std::string& exec_id, std::int64_t grace_ms) {
  const auto grace = static_cast<std::uint64_t>(std::max<std::int64_t>(grace_ms, 0));
  const keeper::Cancel cancel{.exec_id = exec_id, .grace_ms = grace};
  const auto ended = co_await ask<keeper::Ended>(id, cancel, with_grace(grace));
  if (!ended && ended.error().code != Errc::exec_not_found) {
    co_return std::unexpected(ended.error());
  }
  co_return Result<>{};
}

Task<> Keepers::renew(std::string id, std::int64_t deadline_ms) {
  const keeper::Renew renew{.deadline_ms = static_cast<std::uint64_t>(deadline_ms)};
  BERTH_CO_TRY(const std::optional<keeper::Done> done,
               co_await ask<keeper::Done>(id, renew, KeeperLink::usual_limit));
  if (done) co_return Result<>{};
  BERTH_CO_TRY(const Reached reached, co_await reach(id, IfNone::tell));
  if (!reached.gone) co_return Result<>{};
  co_return std::unexpected(why_gone(name_of(id), reached.gone));
}

Task<> Keepers::rename(std::string from, std::string to) {
  const std::string old_path = folder_of(from).path;
  const std::string new_path = folder_of(to).path;
  BERTH_CO_DO(co_await offload(pool_, [old_path, new_path]() -> Result<> {
    if (std::rename(old_path.c_str(), new_path.c_str()) == 0) return {};
    return io_failure("rename", old_path, errno);
  }));
  if (auto held = held_.extract(from)) {
    held.key() = std::move(to);
    held_.insert(std::move(held));
  }
  co_return Result<>{};
}

Task<Usage> Keepers::usage(std::string id) {
  BERTH_CO_TRY(const std::optional<keeper::Usage> used,
               co_await ask<keeper::Usage>(std::move(id), keeper::Stats{}));
  if (!used) co_return Usage{};
  const auto number = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
  const auto if_counted = [&](const std::optional<std::uint64_t>& value) {
    return value ? std::optional{number(*value)} : std::nullopt;
  };
  co_return Usage{.cpu_ms = number(used->cpu_us / 1000),
                  .memory_bytes = number(used->resident_bytes),
                  .memory_bytes_peak = number(used->memory_bytes_peak),
                  .processes = number(used->processes),
                  .processes_peak = number(used->processes_peak),
                  .read_bytes = if_counted(used->read_bytes),
                  .written_bytes = if_counted(used->written_bytes),
                  .oom_kills = number(used->oom_kills)};
}

Task<> Keepers::remove(std::string id) {
  const KeptFolder folder = folder_of(id);
  const auto failed = [&](const Error& why) {
    return fail(Errc::lease_release_failed, name_of(id) + ": " + why.message, why.remedy);
  };
  if (const Result<> stopped = co_await stop_keeper(id); !stopped) {
    co_return failed(stopped.error());
  }
  fault_point("keeper.stopped");
  const Result<> removed = co_await offload(pool_, [folder]() -> Result<> {
    BERTH_DO(expect_nobody_left(folder));
    return remove_tree(folder.path);
  });
  if (!removed) co_return failed(removed.error());
  held_.erase(id);
  co_return Result<>{};
}

Task<> Keepers::stop_keeper(std::string id) {
  const KeptFolder folder = folder_of(id);
  BERTH_CO_TRY(Reached reached, co_await reach(id, IfNone::tell));
  if (const Link link = std::move(reached.link)) {
    const keeper::Stop stop{.grace_ms = release_grace_ms};
    const auto stopped = co_await link->ask<keeper::Done>(stop, with_grace(release_grace_ms));
    // `done` is sent when everything is over and recorded. The keeper then only has to exit, which
    // need not be awaited.
    if (!stopped && stopped.error().code != Errc::keeper_unreachable) {
      BERTH_CO_DO(co_await kill(folder, *link));
    }
    BERTH_CO_DO(co_await link->close());
    if (stopped) co_return Result<>{};
    BERTH_CO_TRY(reached, co_await reach(id, IfNone::tell));
  }
  if (!reached.gone) co_return Result<>{};
  co_return co_await wait_for_wardens(folder, *reached.gone);
}

// A keeper that does not answer, for example because it was stopped, is killed; then its wardens
// end what it held.
Task<> Keepers::kill(KeptFolder folder, KeeperLink& link) {
  BERTH_CO_DO(co_await offload(pool_, [folder]() -> Result<> {
    BERTH_TRY(const keeper::FoundKeeper found, keeper::look_at_keeper(folder.keeper()));
    return kill_keeper(found.identity);
  }));
  co_return co_await link.wait_for_end(death_limit);
}

Task<std::vector<std::string>> Keepers::held() {
  co_return co_await offload(pool_, [root = options_.state_root]() -> Result<Names> {
    BERTH_DO(keeper::make_state_root(root));
    return names_in(root);
  });
}

Task<> Keepers::close() {
  for (const auto& [id, held] : std::exchange(held_, {})) {
    if (held->link) BERTH_CO_DO(co_await held->link->close());
  }
  co_return co_await tasks_.stop();
}

}  // namespace berth::keepers
