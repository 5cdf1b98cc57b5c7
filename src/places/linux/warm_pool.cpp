#include "places/linux/warm_pool.hpp"

#include "base/log.hpp"
#include "core/ids.hpp"

#include <algorithm>
#include <utility>

namespace berth::places {
namespace {

using namespace std::chrono_literals;

constexpr auto quiet_before_filling = 50ms;
constexpr auto tend_every = 5s;
constexpr auto first_pause = 1s;
constexpr int pause_doublings_max = 8;
// Longer than an expired one may wait to be removed.
constexpr auto lifetime_slack = 5min;

}  // namespace

WarmPool::WarmPool(asio::any_io_executor executor, SpareMaker& maker, Random& random,
                   const Clock& clock)
    : maker_(maker),
      random_(random),
      clock_(clock),
      event_(executor),
      tasks_(std::move(executor)) {}

// The order comes from a customer that still exists: the image name of a former customer may mean
// another image by now.
void WarmPool::Shelf::add(PoolCustomer customer) {
  const bool is_first = request.size == 0;
  request.age_max =
      is_first ? customer.request.age_max : std::min(request.age_max, customer.request.age_max);
  request.size += customer.request.size;
  if (is_first) order = std::move(customer.order);
}

bool WarmPool::Shelf::is_young(const Ready& one, Moment now) const {
  return now - one.made < std::min(one.age_max, request.age_max);
}

std::optional<std::string> WarmPool::Shelf::take_surplus(Moment now) {
  const auto is_old = [&](const Ready& one) { return !is_young(one, now); };
  auto surplus = std::ranges::find_if(ready, is_old);
  if (surplus == ready.end() && ready.size() > request.size) surplus = ready.begin();
  if (surplus == ready.end()) return std::nullopt;
  std::string id = std::move(surplus->sandbox.id);
  ready.erase(surplus);
  return id;
}

WarmPool::Shelf* WarmPool::shelf_of(const keeper::sandbox::Plan& plan) {
  const auto found =
      std::ranges::find_if(shelves_, [&](const Shelf& shelf) { return shelf.order.plan == plan; });
  return found == shelves_.end() ? nullptr : &*found;
}

void WarmPool::serve(std::vector<PoolCustomer> customers) {
  has_new_requests_ = true;
  for (Shelf& shelf : shelves_) shelf.request = {};
  for (PoolCustomer& customer : customers) {
    if (customer.request.size == 0) continue;
    Shelf* shelf = shelf_of(customer.order.plan);
    if (shelf == nullptr) shelf = &shelves_.emplace_back(Shelf{.order = customer.order});
    shelf->add(std::move(customer));
  }
  if (!shelves_.empty()) begin_tending();
}

std::optional<SpareSandbox> WarmPool::take(const keeper::sandbox::Plan& plan) {
  const Moment now = std::chrono::steady_clock::now();
  last_asked_ = now;
  Shelf* const shelf = shelf_of(plan);
  if (shelf == nullptr) return std::nullopt;
  const auto found = std::ranges::find_if(
      shelf->ready, [&](const Ready& one) { return shelf->is_young(one, now); });
  if (found == shelf->ready.end()) return std::nullopt;
  SpareSandbox taken = std::move(found->sandbox);
  shelf->ready.erase(found);
  event_.notify();
  return taken;
}

void WarmPool::begin_tending() {
  if (!std::exchange(is_tended_, true)) tasks_.start("pool.tend", tend());
  event_.notify();
}

bool WarmPool::holds(const std::string& id) const {
  const auto is_it = [&](const Ready& ready) { return ready.sandbox.id == id; };
  if (id == in_hand_ || std::ranges::find(half_made_, id) != half_made_.end()) return true;
  return std::ranges::any_of(
      shelves_, [&](const Shelf& shelf) { return std::ranges::any_of(shelf.ready, is_it); });
}

WarmPool::Shelf* WarmPool::wanting(Moment now) {
  const auto found = std::ranges::find_if(shelves_, [&](const Shelf& shelf) {
    return shelf.ready.size() < shelf.request.size && now >= shelf.again_at;
  });
  return found == shelves_.end() ? nullptr : &*found;
}

Task<> WarmPool::tend() {
  while (true) {
    const Moment now = std::chrono::steady_clock::now();
    has_new_requests_ = false;
    co_await retire(now);
    if (has_new_requests_) continue;  // while something was removed
    Shelf* shelf = wanting(now);
    const Moment quiet_at = last_asked_ + quiet_before_filling;
    if (shelf != nullptr && now >= quiet_at) {
      co_await fill(*shelf);
      continue;
    }
    const Result<> rested =
        co_await event_.wait_until(shelf != nullptr ? quiet_at : now + tend_every);
    if (!rested) co_return Result<>{};
  }
}

// Only `retire` removes shelves, and it runs in the same task, so the shelf remains valid.
Task<> WarmPool::fill(Shelf& shelf) {
  in_hand_ = core::SandboxId::make(random_, clock_.now()).str();
  const auto age_max = shelf.request.age_max;
  Result<keeper::Confined> made =
      co_await maker_.make_spare(in_hand_, shelf.order, age_max + lifetime_slack);
  const std::string id = std::exchange(in_hand_, {});
  const Moment now = std::chrono::steady_clock::now();
  if (made) {
    shelf.failures = 0;
    SpareSandbox sandbox{.id = id, .confined = *std::move(made)};
    shelf.ready.push_back({.sandbox = std::move(sandbox), .made = now, .age_max = age_max});
    co_return Result<>{};
  }
  // Parts of it may exist, even if stop() interrupted the making.
  half_made_.push_back(id);
  shelf.again_at = now + first_pause * (1 << std::min(shelf.failures++, pause_doublings_max));
  log::warn("pool.fill_failed", {{"sandbox", id}, {"error", made.error().message}});
  co_return Result<>{};
}

Task<> WarmPool::retire(Moment now) {
  for (std::string& id : std::exchange(half_made_, {})) co_await remove(std::move(id));
  for (Shelf& shelf : shelves_) {
    while (std::optional<std::string> id = shelf.take_surplus(now)) {
      co_await remove(*std::move(id));
    }
  }
  std::erase_if(shelves_,
                [](const Shelf& shelf) { return shelf.request.size == 0 && shelf.ready.empty(); });
  co_return Result<>{};
}

// What cannot be removed is no longer recorded, so the sweeper finds it.
Task<> WarmPool::remove(std::string id) {
  in_hand_ = std::move(id);
  const Result<> removed = co_await maker_.remove_spare(in_hand_);
  if (!removed && removed.error().code == Errc::cancelled) {
    half_made_.push_back(in_hand_);  // stop() retries it
  } else if (!removed) {
    log::warn("pool.remove_failed", {{"sandbox", in_hand_}, {"error", removed.error().message}});
  }
  in_hand_.clear();
  co_return Result<>{};
}

Task<> WarmPool::stop() {
  BERTH_CO_DO(co_await tasks_.stop());
  if (!in_hand_.empty()) half_made_.push_back(std::exchange(in_hand_, {}));
  for (Shelf& shelf : shelves_) shelf.request = {};
  co_return co_await retire(std::chrono::steady_clock::now());
}

}  // namespace berth::places
