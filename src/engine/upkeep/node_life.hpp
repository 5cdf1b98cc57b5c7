#pragma once

#include "core/rows/node.hpp"
#include "engine/services.hpp"

#include <functional>
#include <map>
#include <set>

namespace berth::engine {

// First in every transaction that a server makes for its work: `node_fenced` when others have given
// it up, and then it changes nothing.
Result<> expect_alive(store::Session& session, const core::NodeId& node);

// Whom to ask about what a node has; nothing when it is forgotten.
Result<std::optional<core::NodeBrief>> server_of(store::Session& session,
                                                 const std::optional<core::NodeId>& node);

// A server as an operator sees it.
struct NodeView : core::Node {
  bool is_self = false;  // the one that answers
};
BOOST_DESCRIBE_STRUCT(NodeView, (core::Node), (is_self))

// This server among those that share the store. It says every few seconds that it lives, and fences
// others that have fallen silent, so that what they held can be finished.
class NodeLife {
 public:
  // After this silence, by its own clock, a server fences another.
  using Silence = std::chrono::milliseconds;
  NodeLife(Services& services, core::Node self, Silence silence_max, asio::any_io_executor executor)
      : services_(services),
        self_(std::move(self)),
        silence_max_(silence_max),
        executor_(std::move(executor)) {}

  const core::NodeId& id() const { return self_.id; }
  // Those that share the store and are not given up, by name.
  Task<std::vector<NodeView>> all();
  // Where others reach this server: said before it joins.
  void reachable_as(std::string url) { self_.url = std::move(url); }
  // Whether others share the store, as far as the last heartbeat knows.
  bool has_peers() const { return !seen_.empty(); }

  // Registers this server. Those that had the same home before are fenced at once, and what they
  // held is its own: whoever holds the home's lock knows that they are gone.
  Task<> join(std::set<core::NodeId> former);
  // Until it is cancelled, or with `node_fenced` when others have given this server up: from then
  // on it must not act. `after_beat` is called after each heartbeat that the store has taken.
  Task<> beat(std::function<void()> after_beat);

 private:
  // A heartbeat of another node, and when it was first seen by our own steady clock: no two clocks
  // are compared.
  struct Seen {
    Time heartbeat_at;
    Clock::Steady since;
  };

  Task<> beat_once();
  Task<> fence_silent();

  Services& services_;
  core::Node self_;
  Silence silence_max_;
  asio::any_io_executor executor_;
  std::map<core::NodeId, Seen> seen_;
  Clock::Steady heard_at_;  // when we could last hear anybody
};

}  // namespace berth::engine
