#include "engine/leases/held_lease.hpp"

#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using core::LeaseState;

const core::NodeId here = *core::NodeId::parse("00000000-0000-7000-8000-000000000001");
const core::NodeId elsewhere = *core::NodeId::parse("00000000-0000-7000-8000-000000000002");

core::LeaseRecord lease_at(const core::NodeId& node, LeaseState status) {
  core::LeaseRecord lease{
      core::Lease{.id = *core::LeaseId::parse("00000000-0000-7000-8000-000000000003"),
                  .company_id = *core::CompanyId::parse("00000000-0000-7000-8000-000000000004"),
                  .status = status}};
  lease.node_id = node;
  return lease;
}

TEST(HeldLease, IsThereForTheServerThatHoldsIt) {
  EXPECT_TRUE(expect_held(lease_at(here, LeaseState::active), here));
  EXPECT_TRUE(expect_held(lease_at(here, LeaseState::retained), here));
  const Result<> other = expect_held(lease_at(elsewhere, LeaseState::active), here);
  ASSERT_FALSE(other);
  EXPECT_TRUE(other.error().message.contains("held by another server")) << other.error().message;
}

// After a restart, every earlier lease belongs to another node.
TEST(HeldLease, ThatHasEndedIsSaidToHaveEndedWhoeverHeldIt) {
  for (const core::NodeId& node : {here, elsewhere}) {
    const Result<> ended = expect_held(lease_at(node, LeaseState::released), here);
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Errc::conflict);
    EXPECT_TRUE(ended.error().message.contains("it is released")) << ended.error().message;
  }
}

}  // namespace
}  // namespace berth::engine
