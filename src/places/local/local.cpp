#include "places/local/local.hpp"

#include "base/async/offload.hpp"
#include "base/files.hpp"
#include "places/agent_home_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace berth::places {
namespace {

using keepers::KeptFolder;

bool is_directory(const std::string& path) {
  struct stat found{};
  return path.starts_with('/') && ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

}  // namespace

Local::Local(asio::any_io_executor executor, asio::thread_pool& pool, LocalOptions options,
             std::string homes_root)
    : executor_(executor),
      pool_(pool),
      keepers_(executor, pool, std::move(options)),
      homes_root_(std::move(homes_root)),
      probes_(std::move(executor)) {}

Task<> Local::check_config(const bj::object& /*config*/) {
  co_return Result<>{};
}

Task<Acquired> Local::acquire(const AcquireRequest& request) {
  const KeptFolder folder = keepers_.folder_of(request.lease.key.str());
  BERTH_CO_DO(co_await offload(pool_, [folder] { return make_directories(folder.path, 0700); }));
  co_return Acquired{.provider = "local"};
}

Task<Workspace> Local::realize(const PlaceRef& lease, const std::optional<std::string>& wanted) {
  const KeptFolder folder = keepers_.folder_of(lease.key.str());
  Workspace workspace{.cwd = wanted.value_or(folder.workspace()),
                      .home = folder.home(),
                      .scratch = folder.scratch()};
  if (lease.home_id && !homes_root_.empty()) {
    BERTH_CO_TRY(workspace.home, co_await offload(pool_, [root = homes_root_, id = *lease.home_id] {
                   return make_home_folder(root, id, HomeOwner::server);
                 }));
  }
  // Claude Code finds a session only in the folder where it began, so an agent has a permanent one.
  if (!wanted && lease.home_id && !homes_root_.empty())
    workspace.cwd = *workspace.home + "/workspace";
  BERTH_CO_DO(co_await offload(pool_, [folder, wanted, own = workspace.cwd]() -> Result<> {
    if (wanted && !is_directory(*wanted)) {
      return fail(Errc::working_directory_missing,
                  "working directory " + *wanted + ": is not a directory of this machine",
                  "create it, or leave it out: then the lease has a folder of its own");
    }
    if (!wanted) BERTH_DO(make_directories(own, 0700));
    BERTH_DO(make_directories(folder.home(), 0700));
    return make_directories(folder.scratch(), 0700);
  }));
  co_return workspace;
}

Task<Started> Local::start(const PlaceRef& lease, const Command& command) {
  return keepers_.start(lease.key.str(), command, keepers::Keepers::IfNone::start);
}

Task<Ended> Local::follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                          OutputTaker& taker) {
  return keepers_.follow(lease.key.str(), exec_id, offset, taker);
}

Task<> Local::send(const PlaceRef& lease, const std::string& exec_id, Input input) {
  return keepers_.send(lease.key.str(), exec_id, std::move(input));
}

Task<> Local::cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) {
  return keepers_.cancel(lease.key.str(), exec_id, grace_ms);
}

Task<> Local::renew(const PlaceRef& lease, std::int64_t deadline_ms) {
  return keepers_.renew(lease.key.str(), deadline_ms);
}

Task<> Local::forget_output(const PlaceRef& lease, const std::string& exec_id) {
  return keepers_.forget_output(lease.key.str(), exec_id);
}

Task<Usage> Local::usage(const PlaceRef& lease) {
  return keepers_.usage(lease.key.str());
}

Task<FileRoot> Local::files(const PlaceRef& lease) {
  const std::string path = keepers_.folder_of(lease.key.str()).workspace();
  co_return co_await offload(pool_, [path]() -> Result<FileRoot> {
    BERTH_DO(make_directories(path, 0700));
    Fd folder{::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!folder) return io_failure("open", path, errno);
    return FileRoot{.folder = std::move(folder)};
  });
}

Task<> Local::release(const PlaceRef& lease, core::LeaseEvent /*how*/) {
  return keepers_.remove(lease.key.str());
}

Task<> Local::destroy(const PlaceRef& lease) {
  return keepers_.remove(lease.key.str());
}

Task<std::vector<PlaceKey>> Local::held() {
  BERTH_CO_TRY(const std::vector<std::string> names, co_await keepers_.held());
  std::vector<PlaceKey> leases;
  for (const std::string& name : names) {
    if (Result<core::LeaseId> id = core::LeaseId::parse(name)) leases.emplace_back(*std::move(id));
  }
  co_return leases;
}

Task<> Local::close() {
  BERTH_CO_DO(co_await keepers_.close());
  co_return co_await probes_.stop();
}

}  // namespace berth::places
