#include "engine/upkeep/node_life.hpp"

#include "base/log.hpp"
#include "store/nodes.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <tuple>

namespace berth::engine {
namespace {

// Allows several late heartbeats, as when a store restarts, before a server is fenced.
constexpr int beats_per_silence = 6;

}  // namespace

Result<> expect_alive(store::Session& session, const core::NodeId& node) {
  Result<> alive = store::expect_node_alive(session, node);
  if (!alive && alive.error().code == Errc::conflict) alive.error().code = Errc::node_fenced;
  return alive;
}

Result<std::optional<core::NodeBrief>> server_of(store::Session& session,
                                                 const std::optional<core::NodeId>& node) {
  if (!node) return std::nullopt;
  BERTH_TRY(auto found, store::find_node(session, *node));
  if (!found) return std::nullopt;
  return core::NodeBrief{std::move(found->name), std::move(found->url)};
}

Task<std::vector<NodeView>> NodeLife::all() {
  BERTH_CO_TRY(const auto alive, co_await services_.store.read(store::alive_nodes));
  std::vector<NodeView> out;
  out.reserve(alive.size());
  for (const core::Node& node : alive) out.push_back({node, node.id == self_.id});
  std::ranges::sort(out, {},
                    [](const NodeView& one) { return std::tie(one.name, one.url, one.id); });
  co_return out;
}

Task<> NodeLife::join(std::set<core::NodeId> former) {
  self_.started_at = services_.clock.now();
  self_.heartbeat_at = self_.started_at;
  co_return co_await services_.store.write([&](store::Session& s) -> Result<> {
    BERTH_DO(store::register_node(s, self_));
    BERTH_TRY(const auto alive, store::alive_nodes(s));
    for (const core::Node& node : alive) {
      const bool is_gone = node.id != self_.id && former.contains(node.id);
      if (is_gone) BERTH_DO(store::fence_node(s, node, self_.started_at));
    }
    for (const core::NodeId& node : former) BERTH_DO(store::inherit(s, node, self_.id));
    return {};
  });
}

Task<> NodeLife::beat_once() {
  const Time now = services_.clock.now();
  BERTH_CO_DO(co_await services_.store.write(
      [&](store::Session& s) { return store::heartbeat_node(s, self_.id, now); }));
  co_return co_await fence_silent();
}

Task<> NodeLife::fence_silent() {
  BERTH_CO_TRY(const auto alive, co_await services_.store.read(store::alive_nodes));
  const Clock::Steady now = services_.clock.steady();
  // Silence does not count while we could not read heartbeats: the store was unreachable, or we
  // were suspended.
  const bool was_deaf = now - heard_at_ > silence_max_ / 2;
  heard_at_ = now;
  std::map<core::NodeId, Seen> seen;
  for (const core::Node& node : alive) {
    if (node.id == self_.id) continue;
    const auto before = seen_.find(node.id);
    const bool moved =
        was_deaf || before == seen_.end() || before->second.heartbeat_at != node.heartbeat_at;
    const Clock::Steady since = moved ? now : before->second.since;
    seen.emplace(node.id, Seen{node.heartbeat_at, since});
    if (now - since <= silence_max_) continue;
    BERTH_CO_TRY(const bool fenced,
                 co_await services_.store.write([&](store::Session& s) -> Result<bool> {
                   BERTH_DO(expect_alive(s, self_.id));
                   return store::fence_node(s, node, services_.clock.now());
                 }));
    if (fenced) log::warn("node.fenced", {{"node", node.id}, {"name", node.name}});
  }
  seen_ = std::move(seen);
  co_return Result<>{};
}

Task<> NodeLife::beat(std::function<void()> after_beat) {
  asio::steady_timer timer{executor_};
  while (true) {
    const Result<> beaten = co_await beat_once();
    if (beaten) {
      after_beat();
    } else if (beaten.error().code == Errc::conflict) {
      co_return fail(Errc::node_fenced, beaten.error().message, beaten.error().remedy);
    } else {
      log::warn("node.heartbeat_failed", {{"error", beaten.error().message}});
    }
    timer.expires_after(silence_max_ / beats_per_silence);
    const auto [stopped] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (stopped) co_return Result<>{};
  }
}

}  // namespace berth::engine
