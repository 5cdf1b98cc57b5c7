#pragma once

#include "base/json.hpp"
#include "core/ids.hpp"

namespace berth::core {

// One running server. What it holds (keepers, workers, connections) is its own until its heartbeat
// is too old; then it is fenced, and others finish what it left.
struct Node {
  NodeId id;  // made afresh at every start: a node that comes back late is another one
  std::string name = {};
  std::string version = {};
  Time started_at = {};
  Time heartbeat_at = {};
  std::optional<Time> fenced_at = {};  // set once, by whoever found it silent
};
BOOST_DESCRIBE_STRUCT(Node, (), (id, name, version, started_at, heartbeat_at, fenced_at))

inline constexpr std::int64_t heartbeat_every_ms = 5'000;
// Long enough for several beats to be late, as when a store restarts.
inline constexpr std::int64_t heartbeat_silence_max_ms = 30'000;

// Whether the node may still act. A heartbeat from the future counts: clocks differ.
inline bool is_alive(const Node& node, Time now) {
  return !node.fenced_at && now - node.heartbeat_at <= heartbeat_silence_max_ms;
}

}  // namespace berth::core
