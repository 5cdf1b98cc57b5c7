#pragma once

#include "core/rows/node.hpp"
#include "engine/services.hpp"

#include <functional>
#include <map>
#include <set>

namespace berth::engine {

// First in every transaction that a server makes for its work: `node_fenced` when others have
// fenced it, and then it changes nothing.
Result<> expect_alive(store::Session& session, const core::NodeId& node);

// The server to ask about what a node has; empty when the node was pruned.
Result<std::optional<core::NodeBrief>> server_of(store::Session& session,
                                                 const std::optional<core::NodeId>& node);

// A server as an operator sees it.
struct NodeView : core::Node {
  bool is_self = false;  // the server that responds
};
BOOST_DESCRIBE_STRUCT(NodeView, (core::Node), (is_self))

// This server among those that share the store. It sends a heartbeat every few seconds, and fences
// servers that have fallen silent, so that others can finish their work.
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
  // The servers that share the store and are not fenced, by name.
  Task<std::vector<NodeView>> all();
  // Where others reach this server; set before it joins.
  void reachable_as(std::string url) { self_.url = std::move(url); }
  // Whether other servers share the store, as of the last heartbeat.
  bool has_peers() const { return !seen_.empty(); }

  // Registers this server. Earlier nodes of the same home are fenced at once, and this node
  // inherits what they held: holding the home's lock proves that they have ended.
  Task<> join(std::set<core::NodeId> former);
  // Runs until cancelled, or fails with `node_fenced` when others have fenced this server: from
  // then on it must not act. `after_beat` is called after each heartbeat that the store accepted.
  Task<> beat(std::function<void()> after_beat);

 private:
  // Another node's heartbeat, and when our own steady clock first saw it: no two clocks are
  // compared.
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
  Clock::Steady heard_at_;  // when we could last read heartbeats
};

}  // namespace berth::engine
