#pragma once

#include "base/async/task.hpp"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace berth {

// Runs blocking work on the pool and returns its result, or its exception, on the caller's thread.
// It cannot be cancelled: the objects that the work uses remain alive because the caller still
// waits.
template <class Work>
auto offload(asio::thread_pool& pool, Work work) -> asio::awaitable<std::invoke_result_t<Work&>> {
  // An optional, because a result type need not have a default for the case that the work throws.
  using Answer = std::optional<std::invoke_result_t<Work&>>;
  Answer answer = co_await asio::async_initiate<const asio::use_awaitable_t<>,
                                                void(std::exception_ptr, Answer)>(
      [&pool](auto handler, Work job) {
        auto home = asio::get_associated_executor(handler);
        auto keep_alive = asio::make_work_guard(home);
        asio::post(pool, [handler = std::move(handler), job = std::move(job), home,
                          keep_alive = std::move(keep_alive)]() mutable {
          std::exception_ptr thrown;
          Answer made;
          // Uncaught, an exception would end the pool's thread and with it the process.
          try {
            made.emplace(job());
          } catch (...) {
            thrown = std::current_exception();
          }
          asio::post(home, [handler = std::move(handler), thrown = std::move(thrown),
                            made = std::move(made)]() mutable {
            handler(std::move(thrown), std::move(made));
          });
        });
      },
      asio::use_awaitable, std::move(work));
  co_return *std::move(answer);
}

}  // namespace berth
