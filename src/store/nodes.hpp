#pragma once

#include "core/rows/node.hpp"
#include "store/sql/mapping.hpp"

// Servers that share the store. Whoever is fenced has lost what it held, and learns it here.
namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Node> = "nodes";

Result<> register_node(Session& session, const core::Node& node);
// `conflict` when the node was fenced, or is unknown: it must stop acting.
Result<> heartbeat_node(Session& session, const core::NodeId& id, Time now);
// First in every transaction of a node that writes for its work, so that a node that comes back
// late changes nothing: `conflict`, as for heartbeat_node. Holds until the transaction ends.
Result<> expect_node_alive(Session& session, const core::NodeId& id);

// Also a fenced one; nothing when it was never there or is forgotten.
Result<std::optional<core::Node>> find_node(Session& session, const core::NodeId& id);
// The rows of a table that are for the node of that parameter to look at, as SQL: its own, and
// those of nodes that are gone. What lives on a machine is looked at there as long as it is alive.
std::string is_for_node(std::string_view table, std::string_view parameter);
// What a home held by its former node is its next node's: nobody else reaches it.
Result<> inherit(Session& session, const core::NodeId& former, const core::NodeId& heir);
// Those that are not fenced, the most silent first.
Result<std::vector<core::Node>> alive_nodes(Session& session);
// Fences a node whose heartbeat is still the one that was seen, and makes its unfinished leases and
// sandboxes due for the sweeper; false when it has beaten meanwhile, or was fenced by another.
// Whoever compares with its own clock how long a heartbeat has stood still needs no common time.
Result<bool> fence_node(Session& session, const core::Node& seen, Time now);
// Fences every other node whose last heartbeat is older; those that this call fenced. `conflict`
// when the caller is fenced itself.
Result<std::vector<core::Node>> fence_silent_nodes(Session& session, const core::NodeId& by,
                                                   Time silent_since, Time now);
// Forgets nodes that were fenced before `before` and hold nothing any more; how many, at most
// `limit`. A node that is only silent stays: to fence it is a decision of its own.
Result<std::int64_t> prune_nodes(Session& session, Time before, std::int64_t limit);

}  // namespace berth::store
