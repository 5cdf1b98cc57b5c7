#include "base/async/task_group.hpp"

#include "base/assert.hpp"
#include "base/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace berth {

namespace {

void report(const std::string& name, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& error) {
    // Asio throws this from a coroutine that awaits after it was cancelled, which is the expected
    // end.
    if (error.code() == asio::error::operation_aborted) return;
    log::error("task.threw", {{"task", name}, {"what", error.what()}});
  } catch (const std::exception& error) {
    log::error("task.threw", {{"task", name}, {"what", error.what()}});
  } catch (...) {
    log::error("task.threw", {{"task", name}, {"what", "no std::exception"}});
  }
}

}  // namespace

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
  asio::cancellation_signal* const signal = &place->cancel;
  // A default std::expected is a success, so the exception is checked first.
  asio::co_spawn(
      executor_, std::move(task),
      asio::bind_cancellation_slot(
          place->cancel.slot(), [this, place](std::exception_ptr thrown, const Result<>& result) {
            ended(place, std::move(thrown), result);
          }));
  // The task may have ended already, so its place is no longer accessed. A group that is being
  // stopped also stops tasks that start late, or stop() would wait for them without having asked.
  if (stopping_) cancel(signal);
}

void TaskGroup::ended(std::list<Running>::iterator task, std::exception_ptr thrown,
                      const Result<>& result) {
  if (thrown) {
    report(task->name, thrown);
  } else if (!result && result.error().code != Errc::cancelled) {
    log::error(
        "task.failed",
        {{"task", task->name}, {"code", result.error().code}, {"error", result.error().message}});
  }
  running_.erase(task);
  if (!running_.empty()) return;
  stopping_ = false;
  all_ended_.cancel();
}

void TaskGroup::cancel(asio::cancellation_signal* signal) {
  // Posted, so that a task that was just started has reached its first wait. By then it may also
  // have ended and destroyed its signal.
  asio::post(executor_, [this, signal] {
    for (Running& task : running_) {
      if (&task.cancel == signal) return task.cancel.emit(asio::cancellation_type::terminal);
    }
  });
}

Task<> TaskGroup::stop() {
  stopping_ = !running_.empty();
  for (Running& task : running_) cancel(&task.cancel);
  while (!running_.empty()) {
    co_await all_ended_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  co_return Result<>{};
}

}  // namespace berth
