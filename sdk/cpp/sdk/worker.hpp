#pragma once

#include "sdk/call.hpp"
#include "sdk/wire.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace berth::sdk {

// Why a hook was not even called, or what it returned, with the number that the protocol has for
// it.
struct Refusal {
  int code = rpc::worker_error;
  Error error;
};
using Answer = std::expected<bj::value, Refusal>;

struct Method {
  std::string name;
  // What may wait gets a thread; what cannot is answered by the reader itself, which is quicker.
  enum class Runs { at_once, on_a_thread } runs = Runs::on_a_thread;
  std::function<Answer(Call&, const bj::value& params)> answer;
};

// The main loop of a worker: one thread reads, and hooks answer on threads of their own, so that a
// long command holds up nobody. Threads are made when they are needed and kept.
class Worker {
 public:
  static constexpr std::size_t threads_max = 256;
  static constexpr std::size_t waiting_max = 4096;  // calls beyond the threads; more are refused

  struct Hooks {
    std::vector<Method> methods;           // in the order in which `initialize` lists them
    std::function<Result<>(Call&)> setup;  // before `initialize` is answered
    std::function<void()> closing;         // the host has asked for the end, or is gone
  };
  // `in` and `out` are the pipes to the host.
  Worker(Hooks hooks, Fd in, Fd out);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Serves until the host ends it. Then the process ends, whatever its hooks still do.
  [[noreturn]] void run();

 private:
  struct Request {
    bj::value id;
    std::string method;
    bj::value params;
    std::string invocation;
  };
  void take(std::string_view line);
  void take_request(bj::object& message);
  bool waits(const std::string& name) const;
  void start(Request request);
  void work();
  void answer(const Request& request);
  Answer answer_of(const Request& request);
  Answer initialize(Call& call);
  void close();
  [[noreturn]] void end();

  Hooks hooks_;
  Fd in_;
  HostLink host_;
  std::atomic<bool> is_initialized_ = false;
  std::atomic<bool> is_closing_ = false;
  std::mutex queue_lock_;
  std::condition_variable queued_;
  std::deque<Request> queue_;
  std::size_t idle_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace berth::sdk
