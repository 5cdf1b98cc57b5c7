#include "places/ssh/ssh.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"
#include "places/ssh/keeper_lease.hpp"
#include "places/ssh/shell_lease.hpp"

#include <utility>

namespace berth::places {
namespace {

constexpr std::string_view by_keeper = "keeper";
constexpr std::string_view by_shell = "sh";

// What a lease has recorded about its place. A row of an older server may lack some.
struct SshLease {
  std::optional<std::string> remote_cwd;
  std::string supervision{by_keeper};
  std::optional<std::string> home;
  std::optional<std::string> path;
  std::optional<std::string> paperclip_api_url;
};
BOOST_DESCRIBE_STRUCT(SshLease, (), (remote_cwd, supervision, home, path, paperclip_api_url))

// Where the files of the lease are: as it was acquired, or as it will be.
Result<ssh::LeasePaths> paths_of(const PlaceRef& lease) {
  BERTH_TRY(const core::SshConfig config, core::parse_ssh_config(lease.config));
  const auto facts = read_loosely<SshLease>(lease.metadata);
  return ssh::LeasePaths{.workspace = facts.remote_cwd.value_or(config.remote_workspace_path),
                         .lease_id = lease.key.str()};
}

}  // namespace

Result<std::unique_ptr<Ssh>> Ssh::open(const asio::any_io_executor& executor, const Clock& clock,
                                       egress::Resolver& resolver, ssh::Options options) {
  BERTH_TRY(ssh::ControlFolder folder, ssh::ControlFolder::open(options.control_root));
  return std::unique_ptr<Ssh>{
      new Ssh{executor, clock, resolver, std::move(options), std::move(folder)}};
}

Ssh::Ssh(const asio::any_io_executor& executor, const Clock& clock, egress::Resolver& resolver,
         ssh::Options options, ssh::ControlFolder folder)
    : options_(std::move(options)),
      folder_(std::move(folder)),
      keeper_(options_.keeper_program),
      tasks_(executor),
      shared_{.executor = executor,
              .clock = clock,
              .options = options_,
              .folder = folder_,
              .keeper = keeper_,
              .resolver = resolver,
              .on_idle = [this](ssh::Connection& connection) { end_idle(connection); }} {}

Result<ssh::Connection::Use> Ssh::connection_of(const PlaceRef& lease) {
  BERTH_TRY(ssh::Target target, ssh::target_of(lease, options_));
  std::shared_ptr<ssh::Connection>& place = connections_[target.fingerprint()];
  if (!place) place = std::make_shared<ssh::Connection>(shared_, std::move(target));
  return ssh::Connection::Use{place};
}

void Ssh::end_idle(ssh::Connection& connection) {
  const auto found = connections_.find(connection.target().fingerprint());
  if (found == connections_.end()) return;
  tasks_.start("ssh.close", close_connection(std::move(found->second)));
  connections_.erase(found);
}

Task<> Ssh::close_connection(std::shared_ptr<ssh::Connection> connection) {
  co_return co_await connection->close();
}

std::shared_ptr<ssh::HeldLease> Ssh::hold(const PlaceRef& lease, ssh::Connection::Use connection,
                                          std::string_view supervision) {
  std::shared_ptr<ssh::HeldLease>& place = leases_[lease.key];
  if (place) return place;
  const Result<ssh::LeasePaths> paths = paths_of(lease);
  if (supervision == by_shell) {
    place = std::make_shared<ssh::ShellLease>(std::move(connection), *paths);
  } else {
    place = std::make_shared<ssh::KeeperLease>(std::move(connection), tasks_, *paths);
  }
  return place;
}

Result<std::shared_ptr<ssh::HeldLease>> Ssh::held_lease(const PlaceRef& lease) {
  const auto known = leases_.find(lease.key);
  if (known != leases_.end()) return known->second;
  BERTH_TRY(ssh::Connection::Use connection, connection_of(lease));
  return hold(lease, std::move(connection), read_loosely<SshLease>(lease.metadata).supervision);
}

Task<std::string> Ssh::callback_from(ssh::Connection& connection, const Callback& callback) {
  BERTH_CO_TRY(const std::optional<std::string> origin,
               co_await connection.reachable(callback.candidates));
  if (origin) co_return *origin;
  std::string tried;
  for (const std::string& candidate : callback.candidates) tried += " " + candidate;
  co_return fail(Errc::callback_unreachable,
                 connection.target().name() + ": cannot reach this server; tried:" + tried,
                 "make one of these addresses reachable from the host, or set the public URL of "
                 "this server");
}

// What the lease's row records: enough to find everything again, and no secret.
Task<bj::object> Ssh::facts_of(const AcquireRequest& request, ssh::Connection& connection) {
  BERTH_CO_TRY(const core::SshConfig config, core::parse_ssh_config(request.lease.config));
  BERTH_CO_TRY(const ssh::HostFacts place,
               co_await connection.survey(config.remote_workspace_path));
  const Result<std::string> origin = co_await callback_from(connection, request.callback);
  const bool is_fine =
      origin || (origin.error().code == Errc::callback_unreachable && !request.callback.required);
  if (!is_fine) co_return std::unexpected(origin.error());
  bj::object facts{
      {"host", config.host},         {"port", config.port},
      {"username", config.username}, {"remoteWorkspacePath", config.remote_workspace_path},
      {"remoteCwd", place.cwd},      {"home", place.home},
      {"path", place.path},          {"supervision", place.keeper ? by_keeper : by_shell}};
  if (connection.is_at_private_address()) facts["privateAddress"] = true;
  if (!place.keeper) facts["supervisionReason"] = place.no_keeper;
  if (origin) facts["paperclipApiUrl"] = *origin;
  co_return facts;
}

Task<Acquired> Ssh::acquire(const AcquireRequest& request) {
  entered_.try_emplace(request.lease.key, false);
  BERTH_CO_TRY(ssh::Connection::Use connection, connection_of(request.lease));
  BERTH_CO_TRY(bj::object metadata, co_await facts_of(request, *connection));
  PlaceRef lease = request.lease.clone();
  lease.metadata = metadata;
  BERTH_CO_TRY(const ssh::LeasePaths paths, paths_of(lease));
  const ssh::RunLimits limits{.time = options_.script_limit};
  entered_.insert_or_assign(lease.key, true);
  BERTH_CO_TRY(const ssh::ScriptEnd end,
               co_await connection->ask(ssh::enter_script(paths), limits));
  if (end.status != 0) {
    co_return std::unexpected(ssh::why_not_done(
        Errc::workspace_realization_failed, connection->target().name() + ": " + paths.workspace,
        ssh::remarks(end.output), "choose a workspace path that this user may make and write"));
  }
  const std::string name = "ssh://" + connection->target().name() + paths.workspace;
  const std::string supervision = read_loosely<SshLease>(metadata).supervision;
  const std::shared_ptr<ssh::HeldLease> held = hold(lease, std::move(connection), supervision);
  if (Result<> opened = co_await held->open(); !opened) {
    leases_.erase(lease.key);
    co_return std::unexpected(std::move(opened).error());
  }
  co_return Acquired{.provider = "ssh", .provider_lease_id = name, .metadata = std::move(metadata)};
}

Task<Workspace> Ssh::realize(const PlaceRef& lease, const std::optional<std::string>& wanted) {
  BERTH_CO_TRY(const ssh::LeasePaths paths, paths_of(lease));
  const auto facts = read_loosely<SshLease>(lease.metadata);
  Workspace workspace{.cwd = paths.workspace,
                      .home = facts.home,
                      .path = facts.path,
                      .scratch = paths.scratch(),
                      .api_url = facts.paperclip_api_url};
  if (!wanted) co_return workspace;
  if (wanted->contains('\0')) {
    co_return fail(Errc::working_directory_missing, "the working directory holds a NUL byte");
  }
  BERTH_CO_TRY(const ssh::Connection::Use connection, connection_of(lease));
  const ssh::RunLimits limits{.time = options_.script_limit};
  std::string script = ssh::visit_script(*wanted, paths.workspace);
  BERTH_CO_TRY(const ssh::ScriptEnd end, co_await connection->ask(std::move(script), limits));
  const std::optional<std::string> cwd = ssh::fact(end.output, "cwd");
  if (end.status != 0 || !cwd) {
    co_return fail(Errc::working_directory_missing,
                   "working directory " + *wanted + ": is not a directory of " +
                       connection->target().name() + " that this user may enter",
                   "create it there, or leave it out: then the workspace of the host is used");
  }
  workspace.cwd = *cwd;
  co_return workspace;
}

Task<Started> Ssh::start(const PlaceRef& lease, const Command& command) {
  BERTH_CO_TRY(const std::shared_ptr<ssh::HeldLease> held, held_lease(lease));
  co_return co_await held->start(command);
}

Task<Ended> Ssh::follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                        OutputTaker& taker) {
  BERTH_CO_TRY(const std::shared_ptr<ssh::HeldLease> held, held_lease(lease));
  co_return co_await held->follow(exec_id, offset, taker);
}

Task<> Ssh::send(const PlaceRef& lease, const std::string& exec_id, Input input) {
  BERTH_CO_TRY(const std::shared_ptr<ssh::HeldLease> held, held_lease(lease));
  co_return co_await held->send(exec_id, std::move(input));
}

Task<> Ssh::cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) {
  BERTH_CO_TRY(const std::shared_ptr<ssh::HeldLease> held, held_lease(lease));
  co_return co_await held->cancel(exec_id, grace_ms);
}

Task<> Ssh::renew(const PlaceRef& lease, std::int64_t deadline_ms) {
  BERTH_CO_TRY(const std::shared_ptr<ssh::HeldLease> held, held_lease(lease));
  co_return co_await held->renew(deadline_ms);
}

Task<> Ssh::forget_output(const PlaceRef& /*lease*/, const std::string& /*exec_id*/) {
  co_return Result<>{};
}

Task<> Ssh::check_config(const bj::object& /*config*/) {
  co_return Result<>{};
}

Task<std::vector<PlaceKey>> Ssh::held() {
  co_return std::vector<PlaceKey>{};
}

Task<> Ssh::release(const PlaceRef& lease, core::LeaseEvent /*how*/) {
  return remove(lease);
}

Task<> Ssh::destroy(const PlaceRef& lease) {
  return remove(lease);
}

Task<> Ssh::remove(const PlaceRef& lease) {
  // A host that could not be reached, or that rejected the login, has nothing from the lease.
  if (const auto found = entered_.find(lease.key); found != entered_.end() && !found->second) {
    entered_.erase(found);
    co_return Result<>{};
  }
  BERTH_CO_TRY(const std::shared_ptr<ssh::HeldLease> held, held_lease(lease));
  BERTH_CO_DO(co_await held->remove());
  leases_.erase(lease.key);
  entered_.erase(lease.key);
  co_return Result<>{};
}

Task<> Ssh::close() {
  const auto leases = std::exchange(leases_, {});
  for (const auto& [id, lease] : leases) BERTH_CO_DO(co_await lease->detach());
  const auto connections = std::exchange(connections_, {});
  for (const auto& [fingerprint, connection] : connections) {
    BERTH_CO_DO(co_await connection->close());
  }
  co_return co_await tasks_.stop();
}

std::vector<pid_t> Ssh::master_pids() const {
  std::vector<pid_t> pids;
  for (const auto& [fingerprint, connection] : connections_) {
    for (const pid_t pid : connection->master_pids()) pids.push_back(pid);
  }
  return pids;
}

}  // namespace berth::places
