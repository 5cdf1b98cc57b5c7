#include "base/task_group.hpp"

#include "base/assert.hpp"
#include "base/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace berth {

TaskGroup::TaskGroup(asio::any_io_executor executor)
    : executor_(std::move(executor)),
      all_ended_(executor_, asio::steady_timer::time_point::max()) {}

TaskGroup::~TaskGroup() {
  for (const Running& task : running_) log::warn("task.abandoned", {{"task", task.name}});
}

void TaskGroup::start(std::string name, Task<> task) {
  running_.emplace_back();
  const auto place = std::prev(running_.end());
  place->name = std::move(name);
  // A default std::expected is a success, so the exception is looked at first.
  asio::co_spawn(
      executor_, std::move(task),
      asio::bind_cancellation_slot(
          place->cancel.slot(), [this, place](std::exception_ptr thrown, const Result<>& result) {
            ended(place, std::move(thrown), result);
          }));
}

void TaskGroup::ended(std::list<Running>::iterator task, std::exception_ptr thrown,
                      const Result<>& result) {
  if (thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      log::error("task.threw", {{"task", task->name}, {"what", error.what()}});
    }
  } else if (!result && result.error().code != Errc::cancelled) {
    log::error(
        "task.failed",
        {{"task", task->name}, {"code", result.error().code}, {"error", result.error().message}});
  }
  running_.erase(task);
  if (running_.empty()) all_ended_.cancel();
}

Task<> TaskGroup::stop() {
  // A task that ends at once erases itself, so the list is walked over a copy of its places.
  std::vector<asio::cancellation_signal*> signals;
  for (Running& task : running_) signals.push_back(&task.cancel);
  for (asio::cancellation_signal* signal : signals) {
    asio::post(executor_, [this, signal] {
      for (Running& task : running_) {
        if (&task.cancel == signal) return task.cancel.emit(asio::cancellation_type::terminal);
      }
    });
  }
  while (!running_.empty()) {
    co_await all_ended_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  co_return Result<>{};
}

}  // namespace berth
