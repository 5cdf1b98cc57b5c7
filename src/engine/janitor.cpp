#include "engine/janitor.hpp"

#include "base/log.hpp"
#include "engine/settings.hpp"
#include "store/idempotency.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace berth::engine {
namespace {

constexpr std::chrono::minutes pause{10};
constexpr std::int64_t batch = 500;  // small, so that other writers do not wait
constexpr std::int64_t ms_per_hour = 3'600'000;

Task<std::int64_t> forget_batch(Means& means) {
  co_return co_await means.store.write([&](store::Session& s) -> Result<std::int64_t> {
    BERTH_TRY(const InstanceSettings settings, read_settings(s));
    const Time oldest = means.clock.now() + -settings.answer_retention_hours * ms_per_hour;
    return store::forget_answers(s, oldest, batch);
  });
}

}  // namespace

Task<> keep_clean(Means& means, asio::any_io_executor executor) {
  asio::steady_timer timer{executor};
  while (true) {
    Result<std::int64_t> forgotten = batch;
    while (forgotten && *forgotten == batch) forgotten = co_await forget_batch(means);
    if (!forgotten) log::warn("janitor.failed", {{"error", forgotten.error().message}});
    timer.expires_after(pause);
    const auto [stopped] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (stopped) co_return Result<>{};
  }
}

}  // namespace berth::engine
