#pragma once

#include "base/task.hpp"

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <type_traits>
#include <utility>

namespace berth {

// Runs blocking work on the pool and comes back to the caller's thread with its answer. It cannot
// be cancelled: what the work refers to stays alive because the caller is still here.
template <class Work>
auto offload(asio::thread_pool& pool, Work work) -> asio::awaitable<std::invoke_result_t<Work&>> {
  using Answer = std::invoke_result_t<Work&>;
  return asio::async_initiate<const asio::use_awaitable_t<>, void(Answer)>(
      [&pool](auto handler, Work job) {
        auto home = asio::get_associated_executor(handler);
        auto keep_alive = asio::make_work_guard(home);
        asio::post(pool, [handler = std::move(handler), job = std::move(job), home,
                          keep_alive = std::move(keep_alive)]() mutable {
          Answer answer = job();
          asio::post(home, [handler = std::move(handler), answer = std::move(answer)]() mutable {
            handler(std::move(answer));
          });
        });
      },
      asio::use_awaitable, std::move(work));
}

}  // namespace berth
