#pragma once

#include "base/async/task.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>

#include <list>
#include <string>

namespace berth {

// The only place that spawns coroutines: every task has an owner, a name and an end. One thread.
class TaskGroup {
 public:
  explicit TaskGroup(asio::any_io_executor executor);
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  // The group must be empty by now: stop() it, or run the loop until it has no work.
  ~TaskGroup();

  // An error or an exception that ends the task is logged under the task's name.
  void start(std::string name, Task<> task);
  // Asks every task to end, including those that start meanwhile, and waits until all have ended.
  // Must not be called by a task of the group itself.
  Task<> stop();
  std::size_t size() const { return running_.size(); }

 private:
  struct Running {
    std::string name;
    asio::cancellation_signal cancel;
  };
  void ended(std::list<Running>::iterator task, std::exception_ptr thrown, const Result<>& result);

  void cancel(asio::cancellation_signal* signal);

  asio::any_io_executor executor_;
  std::list<Running> running_;
  bool stopping_ = false;
  asio::steady_timer all_ended_;  // never expires; cancelled when the last task ends
};

}  // namespace berth
