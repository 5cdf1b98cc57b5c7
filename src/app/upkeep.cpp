#include "app/upkeep.hpp"

#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "core/config/linux_config.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/leases/sandbox_room.hpp"
#include "engine/templates/start_from.hpp"
#include "store/places/environments.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <map>

namespace berth::app {
namespace {

using namespace std::chrono_literals;

// This server sees its own changes at once; other servers may change environments too, and the
// meaning of an image name.
constexpr auto look_every = 30s;
constexpr auto collect_every = 10min;
// A client that changes one environment often changes several.
constexpr auto settle_time = 200ms;
constexpr std::int64_t environments_max = 10'000;
constexpr std::int64_t ms_per_hour = 3'600'000;

using Environments = std::vector<core::Stored<core::Environment>>;

// An environment that wants ready sandboxes, and what they start from, or why they cannot.
struct Pooled {
  core::EnvironmentId environment;
  Result<engine::StartFrom> start;
  std::string trimmed = {};  // why it has fewer than requested
};

struct Seen {
  Environments environments;
  std::vector<Pooled> pooled;
};

bool is_about_template(const Error& error) {
  return error.code == Errc::template_not_found || error.code == Errc::conflict;
}

// For each company by its quota, and for all by the instance limit.
Result<engine::PoolSizes> fitting_pools(store::Session& session, const Environments& all) {
  std::map<core::CompanyId, Environments> companies;
  for (const auto& row : all) {
    const bool is_active = row.value.status == core::EnvironmentStatus::active;
    if (!is_active || !row.value.config.contains("poolSize")) continue;
    companies[row.value.company_id].push_back(row);
  }
  BERTH_TRY(const engine::InstanceSettings settings, engine::read_settings(session));
  std::int64_t left = settings.warm_sandboxes_max;
  engine::PoolSizes sizes;
  for (const auto& [company, environments] : companies) {
    BERTH_TRY(const engine::Quota quota, engine::quota_of(session, company, settings));
    for (auto [id, size] : engine::fit_pools(environments, quota)) {
      if (settings.warm_sandboxes_max > 0) size = std::min(size, left);
      left -= size;
      sizes.emplace(id, size);
    }
  }
  return sizes;
}

Result<Seen> look(store::Session& session) {
  Seen seen;
  BERTH_TRY(seen.environments,
            store::environments_of_provider(session, core::linux_provider, environments_max));
  BERTH_TRY(const engine::PoolSizes sizes, fitting_pools(session, seen.environments));
  for (const auto& [environment, version] : seen.environments) {
    const auto size = sizes.find(environment.id);
    if (size == sizes.end()) continue;
    Result<engine::StartFrom> start = engine::start_from(session, environment, std::nullopt);
    // A store failure must not cost an environment its pool.
    if (!start && !is_about_template(start.error())) return std::unexpected(start.error());
    const bj::value& wanted = environment.config.at("poolSize");
    Pooled pooled{environment.id, std::move(start)};
    if (wanted.is_int64() && wanted.get_int64() > size->second) {
      pooled.trimmed = "the pool has " + std::to_string(size->second) + " of the " +
                       std::to_string(wanted.get_int64()) +
                       " sandboxes that it asks for: the quota has no room for more";
    }
    if (pooled.start) pooled.start->config["poolSize"] = size->second;
    seen.pooled.push_back(std::move(pooled));
  }
  return seen;
}

class Upkeep {
 public:
  Upkeep(engine::Services& services, Places& places, UpkeepOptions options)
      : services_(services), places_(places), options_(options) {}

  Task<> once();
  // Must be done promptly: records which images environments name.
  Task<> note_images();

 private:
  Task<> serve_pools(std::vector<Pooled> pooled);
  Task<std::optional<places::PoolCustomer>> customer_of(Pooled pooled);
  Task<> note_images(const Environments& environments);
  Task<> collect_images();

  engine::Services& services_;
  Places& places_;
  UpkeepOptions options_;
  std::map<core::EnvironmentId, std::string> told_;  // why there is no pool
  std::optional<std::vector<images::EnvironmentImage>> noted_;
  Clock::Steady collect_at_ = {};
};

Task<std::optional<places::PoolCustomer>> Upkeep::customer_of(Pooled pooled) {
  BERTH_CO_TRY(engine::StartFrom start, std::move(pooled.start));
  co_return co_await places_.pool_customer(std::move(start.config));
}

Task<> Upkeep::serve_pools(std::vector<Pooled> pooled) {
  std::vector<places::PoolCustomer> customers;
  std::map<core::EnvironmentId, std::string> without;
  for (Pooled& one : pooled) {
    const core::EnvironmentId id = one.environment;
    if (!one.trimmed.empty()) {
      const std::string& why = without[id] = one.trimmed;
      const auto before = told_.find(id);
      const bool is_told = before != told_.end() && before->second == why;
      if (!is_told) log::warn("pool.trimmed", {{"environment", id}, {"reason", why}});
    }
    Result<std::optional<places::PoolCustomer>> customer = co_await customer_of(std::move(one));
    if (customer) {
      if (*customer) customers.push_back(**std::move(customer));
      continue;
    }
    if (customer.error().code == Errc::cancelled) co_return std::unexpected(customer.error());
    const std::string& why = without[id] = customer.error().message;
    const auto before = told_.find(id);
    if (before != told_.end() && before->second == why) continue;
    log::warn("pool.not_served", {{"environment", id}, {"error", why}});
  }
  told_ = std::move(without);
  places_.serve_pools(std::move(customers));
  co_return Result<>{};
}

// Recorded for every process that collects or removes images, including the command line.
Task<> Upkeep::note_images(const Environments& environments) {
  std::vector<images::EnvironmentImage> named;
  for (const auto& [environment, version] : environments) {
    const auto image = read_loosely<core::LinuxConfig>(environment.config).image;
    if (!image || *image == images::host_name) continue;
    named.push_back({environment.id.str(), environment.name, *image});
  }
  if (named == noted_) co_return Result<>{};
  BERTH_CO_DO(co_await places_.note_images(named));
  noted_ = std::move(named);
  co_return Result<>{};
}

Task<> Upkeep::note_images() {
  BERTH_CO_TRY(const Environments all, co_await services_.store.read([](store::Session& s) {
    return store::environments_of_provider(s, core::linux_provider, environments_max);
  }));
  co_return co_await note_images(all);
}

// An image is kept by a name, a sandbox, a template or an environment.
Task<> Upkeep::collect_images() {
  const images::Spared spared{.made_after =
                                  services_.clock.now() + -options_.image_age_hours * ms_per_hour};
  BERTH_CO_TRY(const images::Removed removed, co_await places_.collect_images(spared));
  if (removed.digests.empty() && removed.drafts == 0) co_return Result<>{};
  log::info(
      "images.collected",
      {{"images", removed.digests.size()}, {"drafts", removed.drafts}, {"bytes", removed.bytes}});
  co_return Result<>{};
}

Task<> Upkeep::once() {
  BERTH_CO_TRY(Seen seen, co_await services_.store.read([](store::Session& s) { return look(s); }));
  BERTH_CO_DO(co_await serve_pools(std::move(seen.pooled)));
  BERTH_CO_DO(co_await note_images(seen.environments));
  const Clock::Steady now = services_.clock.steady();
  if (options_.image_age_hours == 0 || now < collect_at_) co_return Result<>{};
  collect_at_ = now + collect_every;
  co_return co_await collect_images();
}

}  // namespace

Task<> keep_up(engine::Services& services, Places& places, UpkeepOptions options,
               asio::any_io_executor executor) {
  Upkeep upkeep{services, places, options};
  asio::steady_timer timer{executor};
  while (true) {
    const std::uint64_t before = services.feed.environment_changes();
    const Result<> done = co_await upkeep.once();
    if (!done && done.error().code == Errc::cancelled) co_return done;
    if (!done) log::warn("upkeep.failed", {{"error", done.error().message}});
    BERTH_CO_DO(co_await services.feed.wait_for_environments(before, look_every));
    const Result<> noted = co_await upkeep.note_images();
    if (!noted && noted.error().code == Errc::cancelled) co_return noted;
    if (!noted) log::warn("upkeep.failed", {{"error", noted.error().message}});
    timer.expires_after(settle_time);
    const auto [stopped] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (stopped) co_return Result<>{};
  }
}

}  // namespace berth::app
