#pragma once

#include "sdk/call.hpp"
#include "sdk/wire.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace berth::sdk {

// Why a hook was not called, or the error it returned, with the protocol's code.
struct Refusal {
  int code = rpc::worker_error;
  Error error;
};
using Answer = std::expected<bj::value, Refusal>;

struct Method {
  std::string name;
  // A call that may block gets a thread; the reader answers any other itself, which is quicker.
  enum class Runs { at_once, on_a_thread } runs = Runs::on_a_thread;
  std::function<Answer(Call&, const bj::value& params)> answer;
};

// The main loop of a worker. The thread that reads a call also answers it, once another thread has
// taken over reading. So a long command does not block other calls, and a short one is not handed
// from thread to thread. Threads are created when needed and kept.
class Worker {
 public:
  static constexpr std::size_t threads_max = 256;
  static constexpr std::size_t waiting_max = 4096;  // calls without a thread; more are refused

  struct Hooks {
    std::vector<Method> methods;           // in the order in which `initialize` lists them
    std::function<Result<>(Call&)> setup;  // before `initialize` is answered
    std::function<void()> closing;         // the host requests the shutdown, or has ended
  };
  // `in` and `out` are the pipes to the host.
  Worker(Hooks hooks, Fd in, Fd out);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Serves until the host ends it. Then the process ends, even if hooks are still running.
  [[noreturn]] void run();

 private:
  struct Request {
    bj::value id;
    std::string method;
    bj::value params;
    std::string invocation;
  };
  [[noreturn]] void work();
  std::optional<Request> wait_for_turn();
  Request read_call();
  std::optional<Request> take(std::string_view line);
  std::optional<Request> take_request(bj::object& message);
  bool waits(const std::string& name) const;
  bool leaves_reading(Request& request);
  void answer(const Request& request);
  Answer answer_of(const Request& request);
  Answer initialize(Call& call);
  void close();
  [[noreturn]] void end();

  Hooks hooks_;
  Fd in_;
  LineReader lines_;  // used by the reading thread
  HostLink host_;
  std::atomic<bool> is_initialized_ = false;
  std::atomic<bool> is_closing_ = false;
  std::mutex turn_lock_;  // guards everything below
  std::condition_variable turn_;
  bool is_read_ = false;         // a thread is reading
  std::size_t idle_ = 0;         // waiting threads
  std::deque<Request> waiting_;  // calls without a thread
  std::vector<std::thread> threads_;
};

}  // namespace berth::sdk
