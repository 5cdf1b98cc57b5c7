#pragma once

#include "core/rows/node.hpp"
#include "store/sql/mapping.hpp"

// Servers that share the store. A fenced server has lost everything it held, and finds out here.
namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Node> = "nodes";

Result<> register_node(Session& session, const core::Node& node);
// `conflict` when the node was fenced or is unknown: it must stop acting.
Result<> heartbeat_node(Session& session, const core::NodeId& id, Time now);
// Comes first in every transaction in which a node writes for its work, so that a node that comes
// back late changes nothing: `conflict`, as for heartbeat_node. Holds until the transaction ends.
Result<> expect_node_alive(Session& session, const core::NodeId& id);

// Also returns a fenced node; empty when it never existed or was pruned.
Result<std::optional<core::Node>> find_node(Session& session, const core::NodeId& id);
// SQL condition for the rows that the node in that parameter must handle: its own, unowned ones,
// and those of dead nodes. A resource on a machine is handled by that machine's node while the node
// is alive.
std::string is_for_node(std::string_view table, std::string_view parameter);
// Moves what a home's former node held to its next node, because no other node can reach it.
Result<> inherit(Session& session, const core::NodeId& former, const core::NodeId& heir);
// Nodes that are not fenced, the most silent first.
Result<std::vector<core::Node>> alive_nodes(Session& session);
// Fences a node whose heartbeat is still the observed one, and makes its unfinished work due for
// the sweeper. False when it has sent a heartbeat since, or another node fenced it. The caller
// measures the silence with its own clock, so clocks need not agree.
Result<bool> fence_node(Session& session, const core::Node& seen, Time now);
// Fences every other node whose last heartbeat is older; returns the nodes that this call fenced.
// `conflict` when the caller is fenced itself.
Result<std::vector<core::Node>> fence_silent_nodes(Session& session, const core::NodeId& by,
                                                   Time silent_since, Time now);
// Deletes up to `limit` nodes that were fenced before `before` and have no unfinished runs, leases,
// sandboxes or setup sessions and no templates; returns how many. A node that is only silent
// remains: fencing it is a separate decision.
Result<std::int64_t> prune_nodes(Session& session, Time before, std::int64_t limit);

}  // namespace berth::store
