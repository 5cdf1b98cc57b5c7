#include "engine/leases/held_lease.hpp"

#include "base/json/peek.hpp"
#include "store/nodes.hpp"

namespace berth::engine {

Result<> expect_held(const core::LeaseRecord& lease, const core::NodeId& node) {
  using core::LeaseState;
  // Checked first: the former holder of an ended lease need not be asked.
  if (lease.status != LeaseState::active && lease.status != LeaseState::retained) {
    return fail(
        Errc::conflict,
        "Lease " + lease.id.str() + " holds no place: it is " + std::string{name_of(lease.status)},
        "'berth sandbox ls' lists the sandboxes that are held; 'berth run -d' starts a run "
        "that holds one");
  }
  if (lease.node_id == node) return {};
  return fail(Errc::conflict, "Lease " + lease.id.str() + " is held by another server",
              "ask that server");
}

Result<> expect_held(store::Session& session, const core::LeaseRecord& lease,
                     const core::NodeId& node) {
  Result<> held = expect_held(lease, node);
  const bool is_live =
      lease.status == core::LeaseState::active || lease.status == core::LeaseState::retained;
  if (held || !is_live || !lease.node_id) return held;
  BERTH_TRY(const auto holder, store::find_node(session, *lease.node_id));
  if (!holder) return held;
  held.error().message += ": " + described(*holder);
  held.error().remedy = "ask that server: " + command_at(*holder, "lease get " + lease.id.str());
  return held;
}

bool is_frozen(const core::LeaseRecord& lease) {
  return peek<bool>(lease.metadata, "frozen").value_or(false);
}

Result<> expect_moving(const core::LeaseRecord& lease) {
  if (!is_frozen(lease)) return {};
  return fail(Errc::conflict, "The sandbox of lease " + lease.id.str() + " is frozen",
              "let it go on: berth sandbox thaw " + lease.id.str());
}

std::map<std::string, Secret> usual_environment(const places::Workspace& place) {
  std::map<std::string, Secret> out;
  if (place.path && place.path->empty()) return out;  // the place sets its own variables
  out.emplace("PATH", Secret{place.path.value_or("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")});
  out.emplace("LANG", Secret{"C.UTF-8"});
  if (place.home) out.emplace("HOME", Secret{*place.home});
  return out;
}

}  // namespace berth::engine
