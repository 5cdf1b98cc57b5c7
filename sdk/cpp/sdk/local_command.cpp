#include "sdk/local_command.hpp"

#include "base/files.hpp"
#include "base/owned.hpp"
#include "sdk/live_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace berth::sdk {
namespace {

using Moment = std::chrono::steady_clock::time_point;

// Descriptors of the holder: the command's own three, one to end it, and one for its result.
constexpr int control_fd = 3;
constexpr int status_fd = 4;
constexpr std::size_t piece_bytes = std::size_t{64} << 10;

struct Pipe {
  Fd read_end;
  Fd write_end;
};

// Above the numbers that the holder gets, so that moving one cannot close another.
Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return io_failure("make", "a pipe", errno);
  const Fd low_read{ends[0]};
  const Fd low_write{ends[1]};
  Pipe pipe{.read_end = Fd{::fcntl(low_read.get(), F_DUPFD_CLOEXEC, status_fd + 1)},
            .write_end = Fd{::fcntl(low_write.get(), F_DUPFD_CLOEXEC, status_fd + 1)}};
  if (!pipe.read_end || !pipe.write_end) return io_failure("make", "a pipe", errno);
  return pipe;
}

struct Pipes {
  Pipe in, out, err, control, status;

  static Result<Pipes> make() {
    Pipes pipes;
    for (Pipe* pipe : {&pipes.in, &pipes.out, &pipes.err, &pipes.control, &pipes.status}) {
      BERTH_TRY(*pipe, make_pipe());
    }
    return pipes;
  }
};

// The holder gets the command in one message: the strings, each followed by a NUL.
std::string message_of(const LocalCommand& command) {
  std::string out = std::to_string(command.grace.count()) + '\0' + command.cwd + '\0' +
                    std::to_string(command.argv.size()) + '\0';
  for (const std::string& word : command.argv) out += word + '\0';
  for (const auto& [name, value] : command.environment) out += name + "=" + value + '\0';
  return std::to_string(out.size()) + '\0' + out;
}

Result<pid_t> start_holder(const Pipes& pipes) {
  posix_spawn_file_actions_t files{};
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, pipes.in.read_end.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, pipes.out.write_end.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, pipes.err.write_end.get(), STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, pipes.control.read_end.get(), control_fd);
  ::posix_spawn_file_actions_adddup2(&files, pipes.status.write_end.get(), status_fd);
  std::string program = "/proc/self/exe";
  std::string verb = "--hold";
  std::array<char*, 3> argv{program.data(), verb.data(), nullptr};
  std::array<char*, 1> none{nullptr};
  pid_t pid = 0;
  const int error_number =
      ::posix_spawn(&pid, program.c_str(), &files, nullptr, argv.data(), none.data());
  ::posix_spawn_file_actions_destroy(&files);
  if (error_number != 0) return io_failure("start", "a holder", error_number);
  return pid;
}

// The worker's side of one command, until its holder has reported the result.
class Held {
 public:
  Held(const LocalCommand& command, Pipes pipes, Call& call)
      : pipes_(std::move(pipes)), output_(call), outgoing_(message_of(command)) {
    if (command.stdin_) input_ = *command.stdin_;
    if (command.timeout_ms > 0) {
      deadline_ = std::chrono::steady_clock::now() +
                  std::chrono::milliseconds{static_cast<std::int64_t>(command.timeout_ms)};
    }
    for (const int fd : {pipes_.in.write_end.get(), pipes_.out.read_end.get(),
                         pipes_.err.read_end.get(), pipes_.control.write_end.get()}) {
      ::fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    if (input_.empty()) pipes_.in.write_end = Fd{};
  }

  // "exit 3", "signal 9" or "start 2".
  std::string follow() {
    while (pipes_.out.read_end || pipes_.err.read_end || pipes_.status.read_end) turn();
    return status_;
  }
  void finish(Executed& executed) { output_.finish(executed); }
  bool has_timed_out() const { return has_timed_out_; }

 private:
  void turn() {
    if (deadline_ && !has_timed_out_ && std::chrono::steady_clock::now() >= *deadline_) {
      has_timed_out_ = true;
      pipes_.control.write_end = Fd{};  // signals the end, whatever the reason
    }
    std::array<pollfd, 5> fds{
        pollfd{pipes_.out.read_end.get(), POLLIN, 0}, pollfd{pipes_.err.read_end.get(), POLLIN, 0},
        pollfd{pipes_.status.read_end.get(), POLLIN, 0},
        pollfd{input_.empty() ? -1 : pipes_.in.write_end.get(), POLLOUT, 0},
        pollfd{outgoing_.empty() ? -1 : pipes_.control.write_end.get(), POLLOUT, 0}};
    if (::poll(fds.data(), fds.size(), wait_ms()) <= 0) return;
    if (fds[4].revents != 0) write_some(pipes_.control.write_end, outgoing_);
    if (fds[3].revents != 0) {
      write_some(pipes_.in.write_end, input_);
      if (input_.empty()) pipes_.in.write_end = Fd{};
    }
    if (fds[0].revents != 0) read_some(pipes_.out.read_end, Stream::stdout_);
    if (fds[1].revents != 0) read_some(pipes_.err.read_end, Stream::stderr_);
    if (fds[2].revents != 0) read_status();
  }

  int wait_ms() const {
    if (!deadline_ || has_timed_out_) return 1000;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        *deadline_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 1000));
  }

  static void write_some(Fd& fd, std::string& bytes) {
    const ssize_t wrote = ::write(fd.get(), bytes.data(), bytes.size());
    if (wrote < 0 && (errno == EAGAIN || errno == EINTR)) return;
    bytes.erase(0, wrote < 0 ? bytes.size() : static_cast<std::size_t>(wrote));
  }

  void read_some(Fd& fd, Stream stream) {
    std::array<char, piece_bytes> piece{};
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got > 0) output_.add(stream, {piece.data(), static_cast<std::size_t>(got)});
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) fd = Fd{};
  }

  void read_status() {
    std::array<char, 64> piece{};
    const ssize_t got = ::read(pipes_.status.read_end.get(), piece.data(), piece.size());
    if (got > 0) status_.append(piece.data(), static_cast<std::size_t>(got));
    if (got <= 0) pipes_.status.read_end = Fd{};
  }

  Pipes pipes_;
  LiveOutput output_;
  std::string outgoing_;
  std::string input_;
  std::string status_;
  std::optional<Moment> deadline_;
  bool has_timed_out_ = false;
};

// The code below runs in the holder: one thread, no memory to leak, one command.

struct Plan {
  int grace_ms = 0;
  std::string cwd;
  std::vector<std::string> argv;
  std::vector<std::string> environment;
};

// Reads this many bytes of the message; nothing when the worker ended before it sent all.
std::optional<std::string> read_exactly(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t had = 0; had < size;) {
    const ssize_t got = ::read(control_fd, text.data() + had, size - had);
    if (got <= 0) return std::nullopt;
    had += static_cast<std::size_t>(got);
  }
  return text;
}

std::optional<Plan> read_plan() {
  std::string digits;
  while (digits.empty() || digits.back() != '\0') {
    const auto next = read_exactly(1);
    if (!next) return std::nullopt;
    digits += *next;
  }
  const auto message = read_exactly(std::strtoul(digits.c_str(), nullptr, 10));
  if (!message) return std::nullopt;
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < message->size(); at += texts.back().size() + 1) {
    texts.emplace_back(message->c_str() + at);
  }
  if (texts.size() < 4) return std::nullopt;
  const auto words = std::strtol(texts[2].c_str(), nullptr, 10);
  const auto begin = texts.begin() + 3;
  return Plan{.grace_ms = std::atoi(texts[0].c_str()),
              .cwd = texts[1],
              .argv = {begin, begin + words},
              .environment = {begin + words, texts.end()}};
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void become(Plan& plan, int failure) {
  ::setsid();
  std::signal(SIGPIPE, SIG_DFL);
  std::vector<char*> argv = pointers_to(plan.argv);
  std::vector<char*> environment = pointers_to(plan.environment);
  environ = environment.data();
  if (::chdir(plan.cwd.c_str()) == 0) ::execvp(argv[0], argv.data());
  const int error_number = errno;
  (void)!::write(failure, &error_number, sizeof error_number);
  ::_exit(127);
}

// Processes of the tree that lost their parent are our children by now.
std::vector<pid_t> children() {
  const std::string self = std::to_string(::getpid());
  const auto text = read_file("/proc/self/task/" + self + "/children", std::size_t{1} << 20);
  std::vector<pid_t> pids;
  for (std::size_t at = 0; text && at < text->size();) {
    const std::size_t end = text->find(' ', at);
    if (end == std::string::npos) break;
    pids.push_back(std::stoi(text->substr(at, end - at)));
    at = end + 1;
  }
  return pids;
}

// Reaped one after the other, because the children of each become ours when it ends.
void kill_all() {
  for (std::vector<pid_t> left = children(); !left.empty(); left = children()) {
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    ::waitpid(-1, nullptr, 0);
  }
}

int tell(const std::string& status) {
  return ::write(status_fd, status.data(), status.size()) > 0 ? 0 : 1;
}

// How the command ended. Nothing when the time is up (-1: there is no limit), or when the worker
// has closed the control pipe, if that is watched.
std::optional<int> wait_for(pid_t command, int control, int limit_ms) {
  const Fd ended{static_cast<int>(::syscall(SYS_pidfd_open, command, 0))};
  std::array<pollfd, 2> fds{pollfd{ended.get(), POLLIN, 0}, pollfd{control, POLLIN, 0}};
  ::poll(fds.data(), fds.size(), limit_ms);
  if (fds[0].revents == 0) return std::nullopt;
  int status = 0;
  ::waitpid(command, &status, 0);
  return status;
}

}  // namespace

Result<Executed> run_local(const LocalCommand& command, Call& call) {
  if (command.argv.empty()) return fail(Errc::validation_failed, "there is no command");
  BERTH_TRY(Pipes pipes, Pipes::make());
  BERTH_TRY(const pid_t holder, start_holder(pipes));
  for (Pipe* pipe : {&pipes.out, &pipes.err, &pipes.status}) pipe->write_end = Fd{};
  for (Pipe* pipe : {&pipes.in, &pipes.control}) pipe->read_end = Fd{};
  Held held{command, std::move(pipes), call};
  const std::string status = held.follow();
  ::waitpid(holder, nullptr, 0);
  const std::size_t blank = status.find(' ');
  if (blank == std::string::npos) {
    return fail(Errc::process_lost,
                "command " + in_quotes(command.argv[0]) + ": its holder was killed");
  }
  const int number = std::atoi(status.c_str() + blank);
  if (status.starts_with("start")) {
    return fail(Errc::command_start_failed, "command " + in_quotes(command.argv[0]) +
                                                " cannot start in " + command.cwd + ": " +
                                                std::strerror(number));
  }
  Executed executed{.timed_out = held.has_timed_out()};
  const bool was_killed = status.starts_with("signal");
  if (was_killed) {
    const char* name = ::sigabbrev_np(number);
    executed.signal = "SIG" + std::string{name != nullptr ? name : "?"};
  } else if (!executed.timed_out) {
    executed.exit_code = number;
  }
  held.finish(executed);
  return executed;
}

bool is_holder(int argc, char** argv) {
  return argc == 2 && std::string_view{argv[1]} == "--hold";
}

int hold_local() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const int fd : {control_fd, status_fd}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  std::optional<Plan> plan = read_plan();
  if (!plan) return 1;
  std::array<int, 2> failure{};
  if (::pipe2(failure.data(), O_CLOEXEC) != 0) return 1;
  const pid_t command = ::fork();
  if (command == 0) become(*plan, failure[1]);
  if (command < 0) return tell("start " + std::to_string(errno));
  ::close(failure[1]);
  int error_number = 0;
  const bool has_failed = ::read(failure[0], &error_number, sizeof error_number) > 0;
  // The command's own ends: its readers wait until the whole tree has closed them.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
  std::optional<int> status = wait_for(command, control_fd, -1);
  if (!status) {
    ::kill(-command, SIGTERM);
    status = wait_for(command, -1, plan->grace_ms);
    if (!status) {
      ::kill(command, SIGKILL);
      status = wait_for(command, -1, -1);
    }
  }
  kill_all();
  if (has_failed) return tell("start " + std::to_string(error_number));
  return WIFSIGNALED(*status) ? tell("signal " + std::to_string(WTERMSIG(*status)))
                              : tell("exit " + std::to_string(WEXITSTATUS(*status)));
}

}  // namespace berth::sdk
