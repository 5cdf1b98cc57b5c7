#include "keepers/kept_folder.hpp"

#include "base/files.hpp"
#include "keeper/protocol/exec_journal.hpp"
#include "keeper/protocol/output.hpp"
#include "keepers/keeper_process.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace berth::keepers {
namespace {

constexpr std::size_t output_block_bytes = 2 * keeper::record_bytes_max;
// Longer than a keeper takes from binding its socket to writing its identity record.
constexpr std::time_t stale_socket_s = 10;
constexpr std::chrono::seconds last_moment{2};

bool is_there(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

// A keeper that was killed between binding its socket and writing its identity record leaves a
// socket that would block every other keeper.
void remove_stale_socket(const KeptFolder& folder) {
  const std::string path = folder.keeper() + "/" + keeper::socket_file;
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return;
  if (::time(nullptr) - found.st_mtime >= stale_socket_s) ::unlink(path.c_str());
}

}  // namespace

Result<KeeperAt> find_keeper(const KeptFolder& folder) {
  const bool has_card = is_there(folder.keeper() + "/" + keeper::card_file);
  // A new keeper listens before it writes its identity record.
  if (!has_card && !is_there(folder.keeper() + "/" + keeper::socket_file)) return KeeperAt{};
  Result<Fd> socket = keeper::connect_keeper(folder.keeper());
  if (socket) return KeeperAt{.socket = *std::move(socket)};
  if (!has_card) return KeeperAt{};
  BERTH_TRY(keeper::FoundKeeper found, keeper::look_at_keeper(folder.keeper()));
  // A process that is being killed closes its socket a moment before it ends.
  if (found.life == keeper::Life::alive && has_ended(found.identity, last_moment)) {
    BERTH_TRY(found, keeper::look_at_keeper(folder.keeper()));
  }
  if (found.life == keeper::Life::alive) return std::unexpected(std::move(socket).error());
  return KeeperAt{.gone = std::move(found)};
}

Result<KeeperAt> find_or_start_keeper(const KeptFolder& folder, const std::string& program,
                                      const std::vector<std::string>& environment,
                                      keeper::KeeperPrefork* prefork) {
  BERTH_TRY(KeeperAt at, find_keeper(folder));
  if (at.socket || at.gone) return at;
  BERTH_DO(make_directories(folder.path, 0700));
  remove_stale_socket(folder);
  if (prefork != nullptr) {
    Result<Fd> nursed = prefork->start_keeper(folder.keeper());
    if (nursed) return KeeperAt{.socket = *std::move(nursed), .is_new = true};
  }
  BERTH_TRY(keeper::SpawnedKeeper spawned,
            keeper::spawn_keeper(
                {.program = program, .folder = folder.keeper(), .environment = environment}));
  return KeeperAt{.socket = std::move(spawned.control), .child = spawned.pid, .is_new = true};
}

Result<> expect_nobody_left(const KeptFolder& folder) {
  const Result<keeper::FoundKeeper> found = keeper::look_at_keeper(folder.keeper());
  const std::uint32_t left = found ? found->end_record.left_behind : 0;
  if (left == 0) return {};
  return fail(Errc::lease_release_failed,
              std::to_string(left) + " of its processes could not be killed",
              "end them as the user they belong to, then resolve the lease");
}

Error why_gone(const std::string& name, const std::optional<keeper::FoundKeeper>& gone) {
  const std::string remedy = "release the lease and take another";
  if (!gone) return {Errc::process_lost, name + ": nothing of it is on this machine", remedy};
  if (gone->life == keeper::Life::dead) {
    return {Errc::process_lost, name + ": its keeper was killed", remedy};
  }
  if (gone->end_record.outcome == keeper::Outcome::lapsed) {
    return {Errc::lease_lapsed, name + ": was not renewed in time, so its commands ended", remedy};
  }
  return {Errc::process_lost, name + ": its keeper has ended: " + gone->end_record.reason, remedy};
}

Result<CommandFiles> look_at_command(const KeptFolder& folder, const std::string& exec_id) {
  CommandFiles files;
  if (!keeper::is_exec_id(exec_id)) return files;
  BERTH_TRY(files.ended, keeper::find_exec(folder.keeper(), exec_id));
  // After a power cut there may be output that the journal does not mention.
  files.has_begun = files.ended || is_there(folder.keeper() + "/" + keeper::output_file(exec_id));
  if (files.ended && files.ended->outcome == keeper::Outcome::running) files.ended.reset();
  return files;
}

bool is_of_this_boot(const keeper::ProcessIdentity& identity) {
  const Result<keeper::ProcessIdentity> now = keeper::identity_of(::getpid());
  return now && now->boot_id == identity.boot_id;
}

Result<> remove_output(const KeptFolder& folder, const std::string& exec_id) {
  BERTH_TRY(const CommandFiles files, look_at_command(folder, exec_id));
  if (!files.ended) return {};  // its keeper still writes to it
  const std::string path = folder.keeper() + "/" + keeper::output_file(exec_id);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return io_failure("remove", path, errno);
}

Result<> remove_all_output(const KeptFolder& folder) {
  BERTH_TRY(const std::vector<std::string> names, names_in(folder.keeper()));
  for (const std::string& name : names) {
    if (!keeper::is_output_file(name)) continue;
    const std::string path = folder.keeper() + "/" + name;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return io_failure("remove", path, errno);
  }
  return {};
}

Result<std::string> read_output(const KeptFolder& folder, const std::string& exec_id,
                                std::uint64_t offset) {
  const std::string path = folder.keeper() + "/" + keeper::output_file(exec_id);
  const Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file && errno == ENOENT) return std::string{};  // there was no output
  if (!file) return io_failure("open", path, errno);
  std::string bytes(output_block_bytes, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(file.get(), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("read", path, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace berth::keepers
