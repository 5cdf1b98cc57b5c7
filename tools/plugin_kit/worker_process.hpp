#pragma once

#include "base/json/json.hpp"
#include "base/owned.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::plugin_kit {

// The host's response to a worker's request: a whole message body, {"result": ...} or {"error":
// ...}. Without a value, no response is sent.
using HostAnswer = std::function<std::optional<bj::object>(const bj::object& request)>;

// A worker behind three pipes, driven byte by byte, so that a test suite can do what no host may
// do. Blocks, with a limit for everything. SIGPIPE must be ignored.
class WorkerProcess {
 public:
  using Limit = std::chrono::milliseconds;

  struct Start {
    std::vector<std::string> argv;
    std::map<std::string, std::string> environment = {};
    std::string folder = "/";
  };
  static Result<WorkerProcess> spawn(const Start& start);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  // Kills and reaps the worker.
  ~WorkerProcess();

  pid_t pid() const { return pid_; }
  void answer_with(HostAnswer answer) { host_ = std::move(answer); }

  void send_bytes(std::string_view bytes);
  void send(const bj::object& message);
  // A call with the next id, on behalf of a company when `invocation` is given.
  std::int64_t call(std::string_view method, bj::value params, const std::string& invocation = {});
  // The response to a call: its "result" or its "error". All other messages are kept.
  Result<bj::object> answer_to(const bj::value& id, Limit limit);
  // call() and answer_to(): the result. An error from the worker is `plugin_call_failed`.
  Result<bj::value> ask(std::string_view method, bj::value params, Limit limit,
                        const std::string& invocation = {});
  // Reads until the condition holds or the limit has passed.
  bool read_until(const std::function<bool()>& is_so, Limit limit);

  void close_stdin();
  void kill(int signal) const;
  // As waitpid reports it.
  std::optional<int> wait_exit(Limit limit);

  // Messages that are not a response to a waiting call.
  std::vector<bj::object> notifications = {};
  std::vector<bj::object> requests = {};
  std::vector<bj::object> stray_answers = {};
  std::vector<std::string> garbage = {};  // lines that are not JSON objects
  std::string stderr_tail = {};
  bool stdout_ended = false;

 private:
  WorkerProcess(pid_t pid, Fd in, Fd out, Fd err);
  // One round of reading and writing.
  void turn(Limit limit);
  void write_some();
  void read_stdout();
  void read_stderr();
  void take(std::string line);

  pid_t pid_;
  Fd in_;
  Fd out_;
  Fd err_;
  HostAnswer host_;
  std::string outgoing_;
  std::size_t sent_ = 0;  // bytes of outgoing_
  std::string incoming_;
  std::int64_t last_id_ = 0;
  std::map<std::string, bj::object> answers_;  // by the id as JSON text
  std::set<std::string> answered_;             // ids whose response was taken
  std::optional<int> status_;
};

}  // namespace berth::plugin_kit
