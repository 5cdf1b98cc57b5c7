#pragma once

#include "base/async/condition.hpp"
#include "base/async/task_group.hpp"
#include "plugins/channel.hpp"
#include "plugins/command.hpp"
#include "plugins/spawn.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace berth::plugins {

struct WorkerExit {
  std::optional<int> code = {};
  std::optional<std::string> signal = {};  // "SIGKILL"
};
// "code=1, signal=null"
std::string describe(const WorkerExit& exit);

struct StopTimes {
  std::chrono::milliseconds shutdown{10'000};  // for the answer to `shutdown`, or the exit
  std::chrono::milliseconds exit{500};
  std::chrono::milliseconds terminate{5'000};
  std::chrono::milliseconds kill{2'000};
};

// The rest of a line that is too long is not read.
enum class LinePart { whole, beginning };

// Reads a worker's stderr, line by line.
class StderrReader {
 public:
  virtual ~StderrReader() = default;
  virtual void read_stderr(std::string_view line, LinePart part) = 0;
};

// One plugin process, with all it starts, and the channel to it. The tree dies with the worker's
// main process, with this object, and with the server. One thread.
class Worker {
 public:
  // The process runs when this returns; its exit shows whether its program could be executed. The
  // peer and the reader must outlive close().
  static Result<std::unique_ptr<Worker>> spawn(asio::any_io_executor executor,
                                               const WorkerCommand& command,
                                               const Launching& launching, Peer& peer,
                                               StderrReader* reader = nullptr,
                                               ChannelLimits limits = {});
  Worker(asio::any_io_executor executor, Spawned made, Peer& peer, StderrReader* reader,
         ChannelLimits limits);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  Channel& channel() { return channel_; }
  pid_t pid() const { return pid_; }  // of the keeper above it
  // The channel on which the keeper reports about the box; can be taken once. Empty without a box.
  Fd take_report() { return std::move(report_); }
  const std::optional<WorkerExit>& exit() const { return exit_; }
  // Why we ended it, if we did: it broke a channel limit, or a caller gave kill() this reason.
  const std::optional<std::string>& reason() const { return reason_; }
  // "Worker process exited (code=1, signal=null)" and the reason. Contains no worker output,
  // because it becomes the error of every open call, whatever its company.
  std::string end_record() const;
  const std::string& stderr_tail() const { return stderr_tail_; }  // the last 8,000 bytes, as read

  // Returns when the process has ended and all its output was read.
  Task<WorkerExit> ended();
  // `shutdown`, then SIGTERM, then SIGKILL to the whole tree, each with its own time limit.
  Task<WorkerExit> stop(StopTimes times = {});
  // Ends the tree now; ended() returns soon after.
  void kill(std::string why);
  // Kills what still lives, and waits for all tasks. After this the object may be destroyed.
  Task<> close();

 private:
  Task<> read_messages();
  Task<> read_stderr();
  void take_stderr(std::string_view bytes);
  Task<> watch_process();
  Task<bool> wait_exit(std::chrono::milliseconds limit);
  void signal(int number) const;

  asio::any_io_executor executor_;
  Channel channel_;
  asio::posix::stream_descriptor err_;
  StderrReader* reader_;
  pid_t pid_;
  Fd report_;
  std::optional<WorkerExit> exit_;
  std::optional<std::string> reason_;
  std::string stderr_tail_;
  std::string stderr_line_;
  bool skips_line_ = false;  // until its end; its beginning was read
  bool messages_ended_ = false;
  bool stderr_ended_ = false;
  Condition waiters_;
  TaskGroup tasks_;
};

// The result of `initialize`, checked.
struct Greeting {
  std::set<std::string> methods;
};

struct InstanceFacts {
  std::string instance_id = "default";
  std::string host_version = "0.0.0";
  std::string deployment_mode = "local_trusted";
  std::string deployment_exposure = "private";
};

// Sends `initialize` and checks the response. Fails with plugin_protocol if it is not valid.
Task<Greeting> initialize(Worker& worker, const Manifest& manifest, const InstanceFacts& instance,
                          std::chrono::milliseconds deadline = std::chrono::milliseconds{15'000});

// The three ways in which plugins encode terminals and byte streams.
enum class Dialect { a, b, c };
Dialect dialect_of(const std::set<std::string>& methods);

}  // namespace berth::plugins
