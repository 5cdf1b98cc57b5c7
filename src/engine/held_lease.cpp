#include "engine/held_lease.hpp"

namespace berth::engine {

Result<> expect_held(const core::LeaseRecord& lease, const core::NodeId& node) {
  using core::LeaseState;
  if (lease.node_id != node) {
    return fail(Errc::conflict, "Lease " + lease.id.str() + " is held by another server",
                "ask that server");
  }
  if (lease.status == LeaseState::active || lease.status == LeaseState::retained) return {};
  return fail(Errc::conflict, "Lease " + lease.id.str() + " holds no place: it is " +
                                  std::string{name_of(lease.status)});
}

}  // namespace berth::engine
