#include "snapshots/git/child_process.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <utility>

namespace berth::snapshots {
namespace {

struct SpawnActions {
  posix_spawn_file_actions_t raw{};
  SpawnActions() { ::posix_spawn_file_actions_init(&raw); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&raw); }
};

struct SpawnAttributes {
  posix_spawnattr_t raw{};
  SpawnAttributes() {
    ::posix_spawnattr_init(&raw);
    ::posix_spawnattr_setflags(
        &raw, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setpgroup(&raw, 0);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&raw, &none);
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigdefault(&raw, &all);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&raw); }
};

std::vector<char*> pointers_of(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct StreamPair {
  Fd ours;
  Fd theirs;
};

Result<StreamPair> pipe_from_child() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return io_failure("make", "a pipe", errno);
  return StreamPair{Fd{ends[0]}, Fd{ends[1]}};
}

Result<StreamPair> socket_to_child() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return io_failure("make", "a socket pair", errno);
  }
  return StreamPair{Fd{ends[0]}, Fd{ends[1]}};
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& words,
                                         const std::vector<std::string>& environment) {
  BERTH_TRY(StreamPair in, socket_to_child());
  BERTH_TRY(StreamPair out, pipe_from_child());
  BERTH_TRY(StreamPair err, pipe_from_child());
  SpawnActions actions;
  ::posix_spawn_file_actions_adddup2(&actions.raw, in.theirs.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions.raw, out.theirs.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions.raw, err.theirs.get(), STDERR_FILENO);
  ::posix_spawn_file_actions_addchdir_np(&actions.raw, "/");
  const SpawnAttributes attributes;
  const std::vector<char*> argv = pointers_of(words);
  const std::vector<char*> envp = pointers_of(environment);
  pid_t id = -1;
  const int failed = ::posix_spawn(&id, words.front().c_str(), &actions.raw, &attributes.raw,
                                   argv.data(), envp.data());
  if (failed != 0) return io_failure("start", words.front(), failed);
  ChildProcess child{id, Fd{static_cast<int>(::syscall(SYS_pidfd_open, id, 0))}};
  if (!child.ended_) return io_failure("watch", words.front(), errno);
  child.input = std::move(in.ours);
  child.output = std::move(out.ours);
  child.errors = std::move(err.ours);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : input(std::move(other.input)),
      output(std::move(other.output)),
      errors(std::move(other.errors)),
      id_(std::exchange(other.id_, -1)),
      ended_(std::move(other.ended_)) {}

ChildProcess::~ChildProcess() {
  if (id_ < 0) return;
  kill_group();
  collect();
}

void ChildProcess::kill_group() const {
  ::kill(-id_, SIGKILL);
  // Until it has its own group, it is reached by its own id alone.
  ::kill(id_, SIGKILL);
}

int ChildProcess::collect() {
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
  }
  id_ = -1;
  return status;
}

}  // namespace berth::snapshots
