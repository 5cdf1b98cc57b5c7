#pragma once

#include "base/json/json.hpp"
#include "core/ids.hpp"

namespace berth::core {

// One running server. It owns its keepers, workers and connections until its heartbeat is too old.
// Then it is fenced, and other servers finish its work.
struct Node {
  NodeId id;  // new at every start: a node that comes back late is a different one
  std::string name = {};
  std::string url = {};  // where other servers reach it
  std::string version = {};
  Time started_at = {};
  Time heartbeat_at = {};
  std::optional<Time> fenced_at = {};  // set once, by the server that found it silent
};
BOOST_DESCRIBE_STRUCT(Node, (), (id, name, url, version, started_at, heartbeat_at, fenced_at))

// The server to ask about something that only it has.
struct NodeBrief {
  std::string name;
  std::string url;
};
BOOST_DESCRIBE_STRUCT(NodeBrief, (), (name, url))

// For a sentence, and as the command line that asks that server.
inline std::string described(const Node& node) {
  return "server " + node.name + (node.url.empty() ? "" : " (" + node.url + ")");
}
inline std::string command_at(const Node& node, const std::string& words) {
  return "berth " + (node.url.empty() ? "" : "--url " + node.url + " ") + words;
}

inline constexpr std::int64_t heartbeat_every_ms = 5'000;
// Allows several late heartbeats, as when a store restarts.
inline constexpr std::int64_t heartbeat_silence_max_ms = 30'000;

// Whether the node may still act. A heartbeat from the future counts, because clocks differ.
inline bool is_alive(const Node& node, Time now) {
  return !node.fenced_at && now - node.heartbeat_at <= heartbeat_silence_max_ms;
}

}  // namespace berth::core
