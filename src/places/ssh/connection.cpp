#include "places/ssh/connection.hpp"

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/log.hpp"
#include "keeper/protocol/version.hpp"

#include <boost/asio/this_coro.hpp>

#include <sys/utsname.h>

#include <algorithm>
#include <utility>

namespace berth::places::ssh {
namespace {

constexpr std::size_t program_bytes_max = std::size_t{256} << 20;
constexpr std::size_t hash_prefix = 16;
constexpr std::size_t masters_max = 32;  // per target: 256 leases
constexpr int tries = 3;
constexpr std::size_t addresses_max = 4;  // tried per host
constexpr std::size_t origin_lists_max = 64;

Whom whom(const Target& target) {
  return {.name = target.name(), .host = target.host, .port = target.port};
}

// A failed script's output, as an error about the workspace.
Error workspace_error(const Target& target, const std::string& workspace, const ScriptEnd& end) {
  return why_not_done(Errc::workspace_realization_failed, target.name() + ": " + workspace,
                      remarks(end.output),
                      "choose a workspace path that this user may make and write");
}

Result<HostFacts> place_of(const Target& target, const std::string& workspace,
                           const ScriptEnd& end) {
  if (end.status != 0) return std::unexpected(workspace_error(target, workspace, end));
  const auto said = [&](std::string_view name) { return fact(end.output, name).value_or(""); };
  return HostFacts{.cwd = said("cwd"),
                   .home = said("home"),
                   .path = said("path"),
                   .system = said("system"),
                   .machine = said("machine"),
                   .keeper = fact(end.output, "keeper")};
}

// To a caller, a host that does not answer in time is unreachable.
Error in_time(Error error) {
  if (error.code == Errc::timed_out) error.code = Errc::ssh_unreachable;
  return error;
}

// The keeper is built for this machine; only a machine of the same kind can run it.
bool is_like_here(const HostFacts& place) {
  utsname here{};
  return ::uname(&here) == 0 && place.system == here.sysname && place.machine == here.machine;
}

}  // namespace

Result<const KeeperProgram::Loaded*> KeeperProgram::load() {
  if (!loaded_) {
    BERTH_TRY(std::string bytes, read_file(path_, program_bytes_max));
    const std::string sha256 = sha256_hex(bytes);
    loaded_ = Loaded{.name = {.file = "keeper-" + sha256.substr(0, hash_prefix),
                              .sha256 = sha256,
                              .version = std::string{keeper::version()}},
                     .bytes = std::move(bytes)};
  }
  return &*loaded_;
}

Connection::Connection(const Shared& shared, Target target)
    : shared_(shared),
      target_(std::move(target)),
      connecting_(shared.executor),
      asking_(shared.executor),
      surveying_(shared.executor),
      idle_(shared.executor) {}

Connection::Use::Use(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {
  ++connection_->uses_;
  connection_->idle_.cancel();
}

Connection::Use::~Use() {
  if (!connection_ || --connection_->uses_ > 0 || connection_->closed_) return;
  connection_->idle_.expires_after(connection_->shared_.options.idle);
  connection_->idle_.async_wait([self = std::weak_ptr{connection_}](const auto& error) {
    const std::shared_ptr<Connection> idle = self.lock();
    if (!error && idle && idle->uses_ == 0 && !idle->closed_) idle->shared_.on_idle(*idle);
  });
}

Result<> Connection::check_open() const {
  if (!closed_) return {};
  return fail(Errc::cancelled, target_.name() + ": the connection is being closed");
}

Task<> Connection::connect() {
  BERTH_CO_DO(co_await master());
  co_return Result<>{};
}

// A host's addresses are tried in the order of the DNS answer, until one is reached.
Task<std::shared_ptr<Master>> Connection::log_in() {
  BERTH_CO_TRY(std::vector<HostAddress> addresses, co_await find_host(target_, shared_.resolver));
  if (addresses.size() > addresses_max) addresses.resize(addresses_max);
  for (std::size_t i = 0;; ++i) {
    BERTH_CO_DO(check_open());
    Result<std::shared_ptr<Master>> fresh =
        co_await Master::connect(target_, addresses[i], shared_.folder, shared_.options);
    const bool is_away = !fresh && fresh.error().code == Errc::ssh_unreachable;
    if (is_away && i + 1 < addresses.size()) continue;
    BERTH_CO_DO(check_open());
    co_return fresh;
  }
}

// A connection with room for one more session; opens one if there is none.
Task<std::shared_ptr<Master>> Connection::master() {
  BERTH_CO_TRY(const AsyncMutex::Lock lock, co_await connecting_.lock());
  BERTH_CO_DO(check_open());
  std::erase_if(masters_, [](const auto& master) { return !master->is_alive(); });
  const auto with_room =
      std::ranges::find_if(masters_, [](const auto& master) { return master->has_room(); });
  if (with_room != masters_.end()) co_return *with_room;
  if (masters_.size() >= masters_max) {
    co_return fail(Errc::overloaded, target_.name() + ": has " + std::to_string(masters_.size()) +
                                         " connections already");
  }
  BERTH_CO_TRY(std::shared_ptr<Master> fresh, co_await log_in());
  was_private_ = was_private_ || fresh->is_at_private_address();
  log::debug("ssh.connected", {{"target", target_.name()}});
  masters_.push_back(fresh);
  co_return fresh;
}

Task<ScriptEnd> Connection::ask(std::string script, RunLimits limits) {
  BERTH_CO_TRY(const AsyncMutex::Lock lock, co_await asking_.lock());
  while (true) {
    const bool fresh = !shell_ || !shell_->is_alive();
    if (fresh) {
      shell_.reset();
      BERTH_CO_TRY(Session session, co_await begin_command(std::string{RemoteShell::command()},
                                                           std::string{shell_greeting}));
      shell_.emplace(std::move(session));
    }
    Result<ScriptEnd> end = co_await shell_->run(script, limits);
    if (end) co_return end;
    shell_.reset();
    // Every script may be repeated, so a shell that broke since its last use is not a failure.
    if (end.error().code != Errc::timed_out && !fresh) continue;
    co_return std::unexpected(in_time(std::move(end).error()));
  }
}

Task<Session> Connection::begin(std::string script) {
  BERTH_CO_TRY(Session session,
               co_await begin_command(std::string{script_command()}, std::string{shell_greeting}));
  BERTH_CO_DO(co_await send_script(session, script, shared_.options.script_limit));
  co_return session;
}

Task<Session> Connection::begin_command(std::string command, std::string line) {
  for (int left = tries;; --left) {
    BERTH_CO_TRY(const std::shared_ptr<Master> carrier, co_await master());
    BERTH_CO_TRY(Session session, carrier->begin(command));
    Result<> begun = co_await session.wait_for_line(line, shared_.options.script_limit);
    if (begun) co_return session;
    // Only now is it known that a connection is full or broken; another one may work.
    const bool broke = begun.error().code == Errc::ssh_unreachable;
    if (broke) std::erase(masters_, carrier);
    if (left == 1 || (!broke && carrier->has_room())) {
      co_return std::unexpected(in_time(std::move(begun).error()));
    }
  }
}

Task<HostFacts> Connection::survey(std::string workspace) {
  BERTH_CO_TRY(const AsyncMutex::Lock lock, co_await surveying_.lock());
  if (const auto known = places_.find(workspace); known != places_.end()) co_return known->second;
  BERTH_CO_TRY(HostFacts place, co_await survey_place(workspace));
  places_.insert_or_assign(workspace, place);
  co_return place;
}

Task<HostFacts> Connection::survey_place(const std::string& workspace) {
  BERTH_CO_TRY(const KeeperProgram::Loaded* const program, shared_.keeper.load());
  const RunLimits limits{.time = shared_.options.script_limit};
  BERTH_CO_TRY(const ScriptEnd end, co_await ask(survey_script(workspace, program->name), limits));
  BERTH_CO_TRY(HostFacts place, place_of(target_, workspace, end));
  if (shared_.options.supervision == Supervision::shell) {
    place.keeper.reset();
    place.no_keeper = "the server is configured to use no keeper";
  } else if (!place.keeper && !is_like_here(place)) {
    place.no_keeper = "the host is " + place.system + " on " + place.machine;
  } else if (!place.keeper) {
    BERTH_CO_DO(co_await bring_keeper(place, *program));
  }
  co_return place;
}

// The second folder is used if the first is not writable or does not allow execution. A full disk
// is reported: work that starts without a keeper would only fail later.
Task<> Connection::bring_keeper(HostFacts& place, const KeeperProgram::Loaded& program) {
  std::optional<Error> last;
  for (const std::string& folder : keeper_folders(place.home, place.cwd)) {
    Result<std::string> brought = co_await upload(folder, program);
    if (brought) {
      place.keeper = *std::move(brought);
      co_return Result<>{};
    }
    last = std::move(brought).error();
    if (last->code != Errc::remote_unsupported && last->code != Errc::remote_disk_full) break;
  }
  if (last->code != Errc::remote_unsupported) co_return std::unexpected(*std::move(last));
  place.no_keeper = last->message;
  co_return Result<>{};
}

Task<std::string> Connection::upload(const std::string& folder,
                                     const KeeperProgram::Loaded& program) {
  BERTH_CO_TRY(Session session, co_await begin(upload_script(folder, program.name)));
  const RunLimits limits{.time = shared_.options.upload_limit};
  BERTH_CO_TRY(const Finished end, co_await finish(session.process(), program.bytes, limits));
  if (const auto path = fact(end.out, "keeper"); path && end.status.is_success()) {
    log::info("ssh.keeper_uploaded", {{"target", target_.name()}, {"path", *path}});
    co_return *path;
  }
  const std::string said = remarks(end.out) + end.err;
  if (end.timed_out || !end.status.code || *end.status.code == 255) {
    co_return std::unexpected(why_no_session(whom(target_), said));
  }
  const std::string what = target_.name() + ": " + folder + "/" + program.name.file;
  // A hash mismatch on a host without a hash program means that the file cannot be checked there.
  co_return std::unexpected(why_not_done(Errc::remote_unsupported, what, said));
}

Task<std::optional<std::string>> Connection::reachable(std::vector<std::string> origins) {
  if (origins.empty()) co_return std::nullopt;
  const auto known = reached_.find(origins);
  const Clock::Steady now = shared_.clock.steady();
  if (known != reached_.end() && now - known->second.at < shared_.options.callback_fresh) {
    co_return known->second.origin;
  }
  BERTH_CO_TRY(Session session, co_await begin(callback_script(origins)));
  const RunLimits limits{.time = shared_.options.script_limit};
  BERTH_CO_TRY(const Finished end, co_await finish(session.process(), {}, limits));
  const std::optional<std::string> origin = fact(end.out, "api");
  reached_.erase(origins);
  if (reached_.size() >= origin_lists_max) reached_.clear();
  if (origin) reached_.insert_or_assign(std::move(origins), Reached{*origin, now});
  co_return origin;
}

Task<> Connection::close() {
  closed_ = true;
  idle_.cancel();
  const std::vector<std::shared_ptr<Master>> masters = std::exchange(masters_, {});
  for (const auto& master : masters) BERTH_CO_DO(co_await master->end());
  // Its connection is closed, so a running script has ended by now.
  BERTH_CO_TRY(const AsyncMutex::Lock lock, co_await asking_.lock());
  if (shell_) BERTH_CO_DO(co_await shell_->end());
  shell_.reset();
  co_return Result<>{};
}

std::vector<pid_t> Connection::master_pids() const {
  std::vector<pid_t> pids;
  pids.reserve(masters_.size());
  for (const auto& master : masters_) pids.push_back(master->pid());
  return pids;
}

}  // namespace berth::places::ssh
