#include "drivers/local.hpp"

#include "base/fault_point.hpp"
#include "base/files.hpp"
#include "base/offload.hpp"
#include "base/remove_tree.hpp"
#include "drivers/bell.hpp"
#include "drivers/keeper_process.hpp"
#include "drivers/keeper_values.hpp"
#include "drivers/output_records.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace berth::drivers {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t input_piece_bytes = std::size_t{256} << 10;
constexpr std::uint64_t release_grace_ms = 5000;
constexpr KeeperLink::Limit death_limit = 30s;
// Longer than a warden may take to kill its tree after its keeper was killed.
constexpr auto wardens_limit = 20s;
constexpr auto look_again_after = 20ms;
constexpr int start_attempts = 10;

KeeperLink::Limit with_grace(std::uint64_t grace_ms) {
  return KeeperLink::usual_limit +
         std::chrono::milliseconds{std::min(grace_ms, keeper::limits::grace_ms)};
}

std::unexpected<Error> not_found(const std::string& exec_id) {
  return fail(Errc::exec_not_found, "exec " + exec_id + ": was never started here");
}

using Names = std::vector<std::string>;

bool is_directory(const std::string& path) {
  struct stat found{};
  return path.starts_with('/') && ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

// Knows how far its taker has come, so that following can go on elsewhere.
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

struct Local::Held {
  explicit Held(const asio::any_io_executor& executor) : opened(executor) {}

  Link link;
  bool opening = false;
  Bell opened;
};

// One at a time: of two who start the first command of a lease, only one may start its keeper.
class Local::Opening {
 public:
  explicit Opening(std::shared_ptr<Held> held) : held_(std::move(held)) { held_->opening = true; }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;
  ~Opening() {
    held_->opening = false;
    held_->opened.ring();
  }

 private:
  std::shared_ptr<Held> held_;
};

Local::Local(asio::any_io_executor executor, asio::thread_pool& pool, LocalOptions options)
    : executor_(executor), pool_(pool), options_(std::move(options)), tasks_(std::move(executor)) {}

LeaseFolder Local::folder_of(const core::LeaseId& id) const {
  return {.path = options_.state_root + "/" + id.str()};
}

KeeperLink Local::make_link(const core::LeaseId& id, Fd socket) {
  return {executor_, tasks_, {.in = std::move(socket), .name = "lease " + id.str()}};
}

Task<Local::Reached> Local::reach(core::LeaseId id, IfNone if_none) {
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
            return find_or_start_keeper(folder, options.keeper_program, options.keeper_environment);
          }));
  if (at.child != 0) {
    tasks_.start("keeper.reap", reap(executor_, at.child));
    fault_point("local.keeper_started");
  }
  if (at.socket) {
    held->link = std::make_shared<KeeperLink>(make_link(id, std::move(at.socket)));
    co_return Reached{.link = held->link};
  }
  held_.erase(id);
  co_return Reached{.gone = std::move(at.gone)};
}

template <class Answer, class Request>
Task<std::optional<Answer>> Local::ask(core::LeaseId id, const Request& request,
                                       KeeperLink::Limit limit) {
  for (int attempt = 1;; ++attempt) {
    BERTH_CO_TRY(const Reached reached, co_await reach(id, IfNone::tell));
    if (!reached.link) co_return std::nullopt;
    Result<Answer> answer = co_await reached.link->template ask<Answer>(request, limit);
    if (answer) co_return *std::move(answer);
    if (answer.error().code != Errc::keeper_unreachable || attempt == 2) {
      co_return std::unexpected(std::move(answer).error());
    }
  }
}

Task<Acquired> Local::acquire(const AcquireRequest& request) {
  const LeaseFolder folder = folder_of(request.lease.lease_id);
  BERTH_CO_DO(co_await offload(pool_, [folder] { return make_directories(folder.path, 0700); }));
  co_return Acquired{.provider = "local"};
}

Task<Workspace> Local::realize(const LeaseFacts& lease, const std::optional<std::string>& wanted) {
  const LeaseFolder folder = folder_of(lease.lease_id);
  Workspace workspace{.cwd = wanted.value_or(folder.workspace()),
                      .home = folder.home(),
                      .scratch = folder.scratch()};
  BERTH_CO_DO(co_await offload(pool_, [folder, wanted]() -> Result<> {
    if (wanted && !is_directory(*wanted)) {
      return fail(Errc::working_directory_missing,
                  "working directory " + *wanted + ": is no directory of this machine",
                  "create it, or leave it out: then the lease has a folder of its own");
    }
    if (!wanted) BERTH_DO(make_directories(folder.workspace(), 0700));
    BERTH_DO(make_directories(folder.home(), 0700));
    return make_directories(folder.scratch(), 0700);
  }));
  co_return workspace;
}

Task<Started> Local::start(const LeaseFacts& lease, const Command& command) {
  const ExecRequest request{command};
  for (int attempt = 1;; ++attempt) {
    BERTH_CO_TRY(Reached reached, co_await reach(lease.lease_id, IfNone::start));
    if (!reached.link) {
      co_return co_await started_before(lease, command, std::move(reached));
    }
    const Result<keeper::Started> started =
        co_await reached.link->ask<keeper::Started>(request.exec());
    if (started) co_return started_of(*started);
    const Errc code = started.error().code;
    // The keeper compares the whole command, and that has a new token in it after a restart.
    if (code == Errc::exec_id_reused) {
      co_return co_await started_before(lease, command, std::move(reached));
    }
    // The connection broke: whether the keeper has taken the command, the same id again tells. Or
    // it was a second keeper, which finds the folder taken by one that a server started just
    // before it was killed, and that needs another moment to listen.
    if (code != Errc::keeper_unreachable || attempt == start_attempts) {
      co_return std::unexpected(started.error());
    }
    Bell pause{executor_};
    BERTH_CO_DO(co_await pause.wait_until(std::chrono::steady_clock::now() + look_again_after));
  }
}

Task<Started> Local::started_before(const LeaseFacts& lease, const Command& command,
                                    Reached reached) {
  const LeaseFolder folder = folder_of(lease.lease_id);
  BERTH_CO_TRY(const CommandFiles files, co_await offload(pool_, [folder, id = command.exec_id] {
                 return look_at_command(folder, id);
               }));
  if (files.ended) {
    BERTH_CO_TRY(const Ended ended, ended_of(*files.ended));
    co_return Started{.pid = files.ended->pid, .started_at = ended.started_at};
  }
  if (reached.link) {
    BERTH_CO_TRY(const keeper::Listing listing,
                 co_await reached.link->ask<keeper::Listing>(keeper::List{}));
    for (const keeper::Listed& listed : listing.live) {
      if (listed.exec_id != command.exec_id) continue;
      co_return started_of({.pid = listed.pid, .started_us = listed.started_us});
    }
    co_return fail(Errc::exec_id_reused,
                   "exec " + command.exec_id + ": the id was used for another command");
  }
  if (!files.has_output) co_return std::unexpected(why_gone(folder, *reached.gone));
  co_return Started{.started_at = Time{reached.gone->card.created_us / 1000}};
}

Task<Ended> Local::follow(const LeaseFacts& lease, const std::string& exec_id, std::uint64_t offset,
                          OutputTaker& taker) {
  const LeaseFolder folder = folder_of(lease.lease_id);
  Position position{taker, offset};
  for (int attempt = 1;; ++attempt) {
    // On a connection of its own: a slow taker must not hold up the answers to other requests.
    BERTH_CO_TRY(KeeperAt at, co_await offload(pool_, [folder] { return find_keeper(folder); }));
    if (!at.socket) break;
    KeeperLink link = make_link(lease.lease_id, std::move(at.socket));
    Result<Ended> ended = co_await link.follow(exec_id, position.offset(), position);
    // A task that was cancelled awaits nothing any more; then the link goes by itself.
    if (!ended && ended.error().code == Errc::cancelled) co_return ended;
    BERTH_CO_DO(co_await link.close());
    const bool is_broken = !ended && ended.error().code == Errc::keeper_unreachable;
    if (!is_broken || position.is_refused() || attempt == 3) co_return ended;
  }
  co_return co_await follow_files(folder, exec_id, position.offset(), taker);
}

// The keeper is gone, so its files are all there is.
Task<Ended> Local::follow_files(LeaseFolder folder, std::string exec_id, std::uint64_t offset,
                                OutputTaker& taker) {
  BERTH_CO_TRY(const KeeperAt at,
               co_await offload(pool_, [folder] { return find_keeper(folder); }));
  if (!at.gone) co_return not_found(exec_id);
  BERTH_CO_DO(co_await wait_for_wardens(folder, *at.gone));
  BERTH_CO_TRY(const CommandFiles files, co_await offload(pool_, [folder, exec_id] {
                 return look_at_command(folder, exec_id);
               }));
  if (!files.has_output && !files.ended) co_return not_found(exec_id);
  if (files.has_output) BERTH_CO_DO(co_await hand_over_file(folder, exec_id, offset, taker));
  if (files.ended) co_return ended_of(*files.ended);
  co_return Ended{.outcome = Outcome::lost,
                  .started_at = Time{at.gone->card.created_us / 1000},
                  .ended_at = Time{keeper::wall_clock_us() / 1000}};
}

Task<> Local::hand_over_file(LeaseFolder folder, std::string exec_id, std::uint64_t offset,
                             OutputTaker& taker) {
  while (true) {
    BERTH_CO_TRY(const std::string bytes, co_await offload(pool_, [folder, exec_id, offset] {
                   return read_output(folder, exec_id, offset);
                 }));
    BERTH_CO_TRY(const CutRecords cut, cut_records(bytes, offset));
    // What is left of the file is a record that its writer did not finish.
    if (cut.pieces.empty()) co_return Result<>{};
    BERTH_CO_DO(co_await taker.take(cut.pieces));
    offset += cut.used;
  }
}

// When a keeper is killed, the wardens of its commands kill their trees and write the exit records.
// Nobody is told when they are done, so the folder is looked at.
Task<> Local::wait_for_wardens(LeaseFolder folder, keeper::FoundKeeper gone) {
  if (gone.life != keeper::Life::dead || !is_of_this_boot(gone.card)) co_return Result<>{};
  const auto until = std::chrono::steady_clock::now() + wardens_limit;
  Bell pause{executor_};
  while (std::chrono::steady_clock::now() < until) {
    const bool all_written = co_await offload(pool_, [folder, ids = gone.execs] {
      return std::ranges::all_of(ids, [&](const std::string& id) {
        return keeper::read_exit(folder.keeper(), id).has_value();
      });
    });
    if (all_written) break;
    BERTH_CO_DO(co_await pause.wait_until(std::chrono::steady_clock::now() + look_again_after));
  }
  co_return Result<>{};
}

Task<> Local::send(const LeaseFacts& lease, const std::string& exec_id, Input input) {
  // The command takes input when it likes. Its end, which comes, is what ends the wait.
  constexpr KeeperLink::Limit as_long_as_it_lives{keeper::limits::deadline_ms};
  if (const auto* bytes = std::get_if<std::string>(&input)) {
    for (std::size_t at = 0; at < bytes->size(); at += input_piece_bytes) {
      const keeper::Write write{.exec_id = exec_id, .bytes = bytes->substr(at, input_piece_bytes)};
      BERTH_CO_DO(co_await tell(lease, exec_id, write, as_long_as_it_lives));
    }
    co_return Result<>{};
  }
  if (const auto* size = std::get_if<core::TerminalSize>(&input)) {
    const keeper::Resize resize = resize_of(exec_id, *size);
    co_return co_await tell(lease, exec_id, resize, KeeperLink::usual_limit);
  }
  if (const auto* signal = std::get_if<SignalNumber>(&input)) {
    const keeper::Signal message{.exec_id = exec_id, .number = signal->number};
    co_return co_await tell(lease, exec_id, message, KeeperLink::usual_limit);
  }
  const keeper::CloseStdin end{.exec_id = exec_id};
  co_return co_await tell(lease, exec_id, end, KeeperLink::usual_limit);
}

template <class Request>
Task<> Local::tell(const LeaseFacts& lease, const std::string& exec_id, const Request& request,
                   KeeperLink::Limit limit) {
  BERTH_CO_TRY(const std::optional<keeper::Done> done,
               co_await ask<keeper::Done>(lease.lease_id, request, limit));
  if (!done) co_return not_found(exec_id);
  co_return Result<>{};
}

Task<> Local::cancel(const LeaseFacts& lease, const std::string& exec_id, std::int64_t grace_ms) {
  const auto grace = static_cast<std::uint64_t>(std::max<std::int64_t>(grace_ms, 0));
  const keeper::Cancel cancel{.exec_id = exec_id, .grace_ms = grace};
  const auto ended = co_await ask<keeper::Ended>(lease.lease_id, cancel, with_grace(grace));
  if (!ended && ended.error().code != Errc::exec_not_found) {
    co_return std::unexpected(ended.error());
  }
  co_return Result<>{};
}

Task<> Local::renew(const LeaseFacts& lease, std::int64_t deadline_ms) {
  const keeper::Renew renew{.deadline_ms = static_cast<std::uint64_t>(deadline_ms)};
  BERTH_CO_TRY(const std::optional<keeper::Done> done,
               co_await ask<keeper::Done>(lease.lease_id, renew, KeeperLink::usual_limit));
  if (done) co_return Result<>{};
  BERTH_CO_TRY(const Reached reached, co_await reach(lease.lease_id, IfNone::tell));
  if (!reached.gone) co_return Result<>{};
  co_return std::unexpected(why_gone(folder_of(lease.lease_id), *reached.gone));
}

Task<> Local::release(const LeaseFacts& lease, core::LeaseEvent /*how*/) {
  return remove(lease.lease_id);
}

Task<> Local::destroy(const LeaseFacts& lease) {
  return remove(lease.lease_id);
}

Task<> Local::remove(core::LeaseId id) {
  const LeaseFolder folder = folder_of(id);
  const auto failed = [&](const Error& why) {
    return fail(Errc::lease_release_failed, "lease " + id.str() + ": " + why.message, why.remedy);
  };
  if (const Result<> stopped = co_await stop_keeper(id); !stopped) {
    co_return failed(stopped.error());
  }
  fault_point("local.keeper_stopped");
  const Result<> removed = co_await offload(pool_, [folder] { return remove_tree(folder.path); });
  if (!removed) co_return failed(removed.error());
  held_.erase(id);
  co_return Result<>{};
}

Task<> Local::stop_keeper(core::LeaseId id) {
  const LeaseFolder folder = folder_of(id);
  BERTH_CO_TRY(Reached reached, co_await reach(id, IfNone::tell));
  if (const Link link = std::move(reached.link)) {
    const keeper::Stop stop{.grace_ms = release_grace_ms};
    const auto stopped = co_await link->ask<keeper::Done>(stop, with_grace(release_grace_ms));
    // `done` is said when nothing is left and the keeper only has to flush its files and go, for
    // which nobody needs to wait.
    if (!stopped && stopped.error().code != Errc::keeper_unreachable) {
      BERTH_CO_DO(co_await kill(folder, *link));
    }
    BERTH_CO_DO(co_await link->close());
    BERTH_CO_TRY(reached, co_await reach(id, IfNone::tell));
  }
  if (!reached.gone) co_return Result<>{};
  BERTH_CO_DO(co_await wait_for_wardens(folder, *reached.gone));
  const std::uint32_t left = reached.gone->epitaph.left_behind;
  if (left == 0) co_return Result<>{};
  co_return fail(Errc::lease_release_failed,
                 std::to_string(left) + " of its processes could not be killed",
                 "end them as the user they belong to, then resolve the lease");
}

// A keeper that does not answer, because somebody has stopped it, is killed; then its wardens end
// what it held.
Task<> Local::kill(LeaseFolder folder, KeeperLink& link) {
  BERTH_CO_DO(co_await offload(pool_, [folder]() -> Result<> {
    BERTH_TRY(const keeper::FoundKeeper found, keeper::look_at_keeper(folder.keeper()));
    return kill_keeper(found.card);
  }));
  co_return co_await link.wait_for_end(death_limit);
}

Task<std::vector<core::LeaseId>> Local::held() {
  BERTH_CO_TRY(const std::vector<std::string> names,
               co_await offload(pool_, [root = options_.state_root]() -> Result<Names> {
                 BERTH_DO(make_directories(root, 0700));
                 return names_in(root);
               }));
  std::vector<core::LeaseId> leases;
  for (const std::string& name : names) {
    if (Result<core::LeaseId> id = core::LeaseId::parse(name)) leases.push_back(*std::move(id));
  }
  co_return leases;
}

Task<> Local::close() {
  for (const auto& [id, held] : std::exchange(held_, {})) {
    if (held->link) BERTH_CO_DO(co_await held->link->close());
  }
  co_return co_await tasks_.stop();
}

}  // namespace berth::drivers
