#include "app/upkeep.hpp"

#include "base/log.hpp"
#include "core/linux_config.hpp"
#include "store/environments.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace berth::app {
namespace {

// Sooner than a pool forgets whom it serves.
constexpr std::chrono::minutes pause{10};
constexpr std::int64_t environments_max = 10'000;
constexpr std::int64_t ms_per_hour = 3'600'000;

using Environments = std::vector<core::Stored<core::Environment>>;

Task<> fill_pools(const Environments& environments, Places& places) {
  for (const auto& one : environments) {
    if (one.value.status != core::EnvironmentStatus::active) continue;
    const Result<> primed = co_await places.prime(one.value.config);
    if (primed) continue;
    if (primed.error().code == Errc::cancelled) co_return primed;
    log::warn("pool.not_primed",
              {{"environment", one.value.id}, {"error", primed.error().message}});
  }
  co_return Result<>{};
}

// A name keeps an image, and so do a sandbox and a template; an environment may also know one by
// its digest alone.
Task<> collect_images(const Environments& environments, Places& places, Time before) {
  images::Spared spared{.made_after = before};
  for (const auto& one : environments) {
    const bj::value* image = one.value.config.if_contains("image");
    if (image != nullptr && image->is_string()) spared.images.emplace_back(image->get_string());
  }
  BERTH_CO_TRY(const images::Removed removed, co_await places.collect_images(std::move(spared)));
  if (removed.digests.empty() && removed.drafts == 0) co_return Result<>{};
  log::info(
      "images.collected",
      {{"images", removed.digests.size()}, {"drafts", removed.drafts}, {"bytes", removed.bytes}});
  co_return Result<>{};
}

Task<> keep_up_once(engine::Means& means, Places& places, UpkeepOptions options) {
  BERTH_CO_TRY(const Environments environments, co_await means.store.read([](store::Session& s) {
    return store::environments_of_provider(s, core::linux_provider, environments_max);
  }));
  BERTH_CO_DO(co_await fill_pools(environments, places));
  if (options.image_age_hours == 0) co_return Result<>{};
  const Time before = means.clock.now() + -options.image_age_hours * ms_per_hour;
  co_return co_await collect_images(environments, places, before);
}

}  // namespace

Task<> keep_up(engine::Means& means, Places& places, UpkeepOptions options,
               asio::any_io_executor executor) {
  asio::steady_timer timer{executor};
  while (true) {
    const Result<> done = co_await keep_up_once(means, places, options);
    if (!done && done.error().code != Errc::cancelled) {
      log::warn("upkeep.failed", {{"error", done.error().message}});
    }
    timer.expires_after(pause);
    const auto [stopped] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (stopped) co_return Result<>{};
  }
}

}  // namespace berth::app
