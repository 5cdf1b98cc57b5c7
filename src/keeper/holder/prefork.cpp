#include "keeper/holder/prefork.hpp"

#include "base/files.hpp"
#include "keeper/protocol/descriptors.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace berth::keeper {
namespace {

constexpr int prefork_control_fd = 3;
// Room for the command line that a keeper shows in /proc.
constexpr std::size_t shown_bytes = 256;

struct Ends {
  Fd ours;
  Fd theirs;
};

Result<Ends> make_pair(int type) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return io_failure("socketpair", "a prefork", errno);
  }
  return Ends{.ours = Fd{pair[0]}, .theirs = Fd{pair[1]}};
}

Result<pid_t> spawn(const KeeperPrefork::Options& options, int control) {
  posix_spawn_file_actions_t files{};
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, control, prefork_control_fd);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  }
  posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  std::string program = options.program;
  std::string verb = "prefork";
  std::string room(shown_bytes, ' ');
  const std::array<char*, 4> argv{program.data(), verb.data(), room.data(), nullptr};
  std::vector<std::string> variables = options.environment;
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  pid_t pid = 0;
  const int error_number =
      ::posix_spawn(&pid, program.c_str(), &files, &attributes, argv.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (error_number != 0) return io_failure("start", program, error_number);
  return pid;
}

}  // namespace

Result<> KeeperPrefork::start() {
  BERTH_TRY(Ends ends, make_pair(SOCK_SEQPACKET));
  if (ends.theirs.get() <= prefork_control_fd) {
    // dup2 onto the same number would leave it close-on-exec.
    ends.theirs = Fd{::fcntl(ends.theirs.get(), F_DUPFD_CLOEXEC, prefork_control_fd + 1)};
  }
  BERTH_TRY(const pid_t pid, spawn(options_, ends.theirs.get()));
  // The started process exits at once. It leaves an orphan, which the server need not wait for.
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(Errc::keeper_unreachable, options_.program + ": has made no prefork",
                "use the berth-keeper that came with this berth");
  }
  control_ = std::move(ends.ours);
  return {};
}

Result<Fd> KeeperPrefork::start_keeper(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return io_failure("mkdir", folder, errno);
  }
  BERTH_TRY(Ends ends, make_pair(SOCK_STREAM));
  const int passed = ends.theirs.get();
  const std::scoped_lock lock{mutex_};
  for (const bool is_last : {false, true}) {
    if (!control_) BERTH_DO(start());
    if (send_with(control_.get(), folder, {&passed, 1}, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
      return std::move(ends.ours);
    }
    // It was killed or does not respond; a new one may work.
    control_ = Fd{};
    if (is_last) break;
  }
  return io_failure("send", "a prefork", errno);
}

}  // namespace berth::keeper
