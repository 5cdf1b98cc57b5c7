#include "places/ssh/child_process.hpp"

#include "base/files.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace berth::places::ssh {
namespace {

using Pipe = asio::posix::stream_descriptor;

struct Ends {
  Fd read;
  Fd write;
};

Result<Ends> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return io_failure("pipe", "ssh", errno);
  return Ends{.read = Fd{ends[0]}, .write = Fd{ends[1]}};
}

struct SpawnPlan {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};

  SpawnPlan() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }

  // A descriptor that already has its number would remain close-on-exec, so each one is above 2:
  // the pipes are made while this program's own three streams are open.
  void give(int fd, int as) { ::posix_spawn_file_actions_adddup2(&files, fd, as); }
  void clean_signals_in_own_group() {
    sigset_t all;
    ::sigfillset(&all);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> spawn(const ProgramCall& call, const Ends& in, const Ends& out, const Ends& err) {
  SpawnPlan plan;
  plan.give(in.read.get(), STDIN_FILENO);
  plan.give(out.write.get(), STDOUT_FILENO);
  plan.give(err.write.get(), STDERR_FILENO);
  plan.clean_signals_in_own_group();
  std::vector<std::string> words{call.program};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  std::vector<std::string> variables = call.environment;
  pid_t pid = 0;
  const int error_number = ::posix_spawn(&pid, call.program.c_str(), &plan.files, &plan.attributes,
                                         pointers_to(words).data(), pointers_to(variables).data());
  if (error_number != 0) return io_failure("start", call.program, error_number);
  return pid;
}

// Returns when the pipe ends, through EOF or an error. Bytes beyond the maximum are dropped.
asio::awaitable<void> collect(Pipe& pipe, std::string& text, std::size_t bytes_max) {
  std::vector<char> chunk(std::size_t{64} << 10);
  while (true) {
    const auto [error, got] = co_await pipe.async_read_some(asio::buffer(chunk), tuple_awaitable);
    if (error) co_return;
    text.append(chunk.data(), std::min(got, bytes_max - text.size()));
  }
}

asio::awaitable<void> feed(ChildProcess& child, std::string_view bytes) {
  if (!bytes.empty())
    co_await asio::async_write(child.input(), asio::buffer(bytes), tuple_awaitable);
  child.close_input();
}

}  // namespace

// The part that outlives the object: the exit notification and the reaping.
struct ChildProcess::Life : std::enable_shared_from_this<ChildProcess::Life> {
  Life(const asio::any_io_executor& executor, pid_t process, Fd process_fd)
      : pid(process),
        pidfd(executor, process_fd.release()),
        gone(executor, asio::steady_timer::time_point::max()) {}

  void watch() {
    pidfd.async_wait(Pipe::wait_read, [self = shared_from_this()](const auto& error) {
      if (!error) self->reap();
    });
  }

  // The descriptor also wakes up when the process merely changes state, so this checks whether it
  // ended.
  void reap() {
    siginfo_t end{};
    const auto id = static_cast<id_t>(pidfd.native_handle());
    const int waited = ::waitid(P_PIDFD, id, &end, WEXITED | WNOHANG);
    if ((waited == 0 && end.si_pid == 0) || (waited != 0 && errno != ECHILD)) return watch();
    status = ExitStatus{};
    if (waited == 0 && end.si_code == CLD_EXITED) status->code = end.si_status;
    if (waited == 0 && end.si_code != CLD_EXITED) status->signal = end.si_status;
    gone.cancel();
  }

  // Until it is reaped, its pid and therefore its process group id cannot be reused.
  void signal_group(int number) const {
    if (!status) ::kill(-pid, number);
  }

  pid_t pid;
  Pipe pidfd;
  std::optional<ExitStatus> status;
  asio::steady_timer gone;  // never expires; cancelled when the process has been reaped
};

Result<ChildProcess> ChildProcess::start(const asio::any_io_executor& executor,
                                         const ProgramCall& call) {
  BERTH_TRY(Ends in, make_pipe());
  BERTH_TRY(Ends out, make_pipe());
  BERTH_TRY(Ends err, make_pipe());
  BERTH_TRY(const pid_t pid, spawn(call, in, out, err));
  Fd pidfd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  if (!pidfd) {
    const int error_number = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return io_failure("watch", call.program, error_number);
  }
  ChildProcess child;
  child.life_ = std::make_shared<Life>(executor, pid, std::move(pidfd));
  child.life_->watch();
  child.input_.emplace(executor, in.write.release());
  child.output_.emplace(executor, out.read.release());
  child.errors_.emplace(executor, err.read.release());
  return child;
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (life_) life_->signal_group(SIGKILL);
  life_ = std::move(other.life_);
  input_ = std::move(other.input_);
  output_ = std::move(other.output_);
  errors_ = std::move(other.errors_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (life_) life_->signal_group(SIGKILL);
}

asio::any_io_executor ChildProcess::executor() const {
  return life_->gone.get_executor();
}

pid_t ChildProcess::pid() const {
  return life_->pid;
}

bool ChildProcess::is_running() const {
  return !life_->status;
}

void ChildProcess::send_signal(int number) const {
  life_->signal_group(number);
}

Task<ExitStatus> ChildProcess::wait() {
  const std::shared_ptr<Life> life = life_;
  while (!life->status) {
    co_await life->gone.async_wait(tuple_awaitable);
  }
  co_return *life->status;
}

void ChildProcess::close_pipes() {
  boost::system::error_code ignored;
  for (auto* pipe : {&input_, &output_, &errors_}) {
    if (*pipe) (*pipe)->close(ignored);
  }
}

Fd ChildProcess::release_input() {
  Fd fd{input_->release()};
  input_.reset();
  return fd;
}

Fd ChildProcess::release_output() {
  Fd fd{output_->release()};
  output_.reset();
  return fd;
}

struct KillTimer::Watch {
  explicit Watch(const asio::any_io_executor& executor) : timer(executor) {}
  asio::steady_timer timer;
  ChildProcess* child = nullptr;
  bool has_struck = false;
};

KillTimer::KillTimer(const asio::any_io_executor& executor, ChildProcess& child,
                     std::chrono::milliseconds limit)
    : watch_(std::make_shared<Watch>(executor)) {
  watch_->child = &child;
  watch_->timer.expires_after(limit);
  watch_->timer.async_wait([watch = watch_](const auto& error) {
    if (error || watch->child == nullptr) return;
    watch->has_struck = true;
    watch->child->send_signal(SIGKILL);
    watch->child->close_pipes();
  });
}

KillTimer::~KillTimer() {
  watch_->child = nullptr;
  watch_->timer.cancel();
}

bool KillTimer::has_struck() const {
  return watch_->has_struck;
}

Task<Finished> finish(ChildProcess& child, std::string_view input, RunLimits limits) {
  using namespace asio::experimental::awaitable_operators;
  const KillTimer deadline{co_await asio::this_coro::executor, child, limits.time};
  Finished end;
  co_await (feed(child, input) && collect(child.output(), end.out, limits.output_bytes) &&
            collect(child.errors(), end.err, limits.output_bytes));
  BERTH_CO_TRY(end.status, co_await child.wait());
  end.timed_out = deadline.has_struck();
  co_return end;
}

Task<Finished> run_program(ProgramCall call, RunLimits limits) {
  BERTH_CO_TRY(ChildProcess child, ChildProcess::start(co_await asio::this_coro::executor, call));
  co_return co_await finish(child, {}, limits);
}

}  // namespace berth::places::ssh
