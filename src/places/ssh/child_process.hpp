#pragma once

#include "base/async/task.hpp"
#include "base/owned.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Programs of this machine that the driver runs: ssh and ssh-keygen.
namespace berth::places::ssh {

struct ProgramCall {
  std::string program;  // absolute path
  std::vector<std::string> arguments = {};
  std::vector<std::string> environment = {};  // NAME=value; complete
};

struct ExitStatus {
  std::optional<int> code = {};
  std::optional<int> signal = {};

  bool is_success() const { return code == 0; }
};

// A process in its own group with pipes on its three streams. It inherits nothing else. Destroying
// the object kills the group; the process is reaped when the kernel reports its end.
class ChildProcess {
 public:
  static Result<ChildProcess> start(const asio::any_io_executor& executor, const ProgramCall& call);
  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  asio::any_io_executor executor() const;
  pid_t pid() const;
  bool is_running() const;
  void send_signal(int number) const;
  // Waits until it has ended. Several callers may wait.
  Task<ExitStatus> wait();

  asio::posix::stream_descriptor& input() { return *input_; }
  asio::posix::stream_descriptor& output() { return *output_; }
  asio::posix::stream_descriptor& errors() { return *errors_; }
  void close_input() { input_.reset(); }
  // Pending reads and writes on the pipes fail.
  void close_pipes();
  // Hands over a pipe to a caller that moves the bytes itself; the process remains with this
  // object.
  Fd release_input();
  Fd release_output();

 private:
  struct Life;
  ChildProcess() = default;

  std::shared_ptr<Life> life_;
  std::optional<asio::posix::stream_descriptor> input_;
  std::optional<asio::posix::stream_descriptor> output_;
  std::optional<asio::posix::stream_descriptor> errors_;
};

// Kills a process when its time is over. Closes its pipes too, because other processes may hold
// their far ends. Everything that waits for either then continues, so this is a deadline for all of
// it. The process object must outlive the timer and must not move.
class KillTimer {
 public:
  KillTimer(const asio::any_io_executor& executor, ChildProcess& child,
            std::chrono::milliseconds limit);
  KillTimer(const KillTimer&) = delete;
  KillTimer& operator=(const KillTimer&) = delete;
  ~KillTimer();

  bool has_struck() const;

 private:
  struct Watch;
  std::shared_ptr<Watch> watch_;
};

struct RunLimits {
  std::chrono::milliseconds time{15'000};
  std::size_t output_bytes = std::size_t{128} << 10;  // per stream; the rest is dropped
};

struct Finished {
  ExitStatus status;
  std::string out;
  std::string err;
  bool timed_out = false;
};

// Writes input to a new process, collects its output, and waits for its end.
Task<Finished> finish(ChildProcess& child, std::string_view input, RunLimits limits);
Task<Finished> run_program(ProgramCall call, RunLimits limits);

}  // namespace berth::places::ssh
