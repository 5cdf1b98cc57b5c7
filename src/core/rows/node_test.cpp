#include "core/rows/node.hpp"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

Node node_that_beat_at(std::int64_t ms) {
  return {.id = *NodeId::parse("11111111-0000-4000-8000-000000000000"),
          .name = "a",
          .version = "1",
          .started_at = Time{0},
          .heartbeat_at = Time{ms},
          .fenced_at = {}};
}

TEST(Node, LivesUntilItWasSilentForLongerThanAllowed) {
  const Node node = node_that_beat_at(1'000);
  EXPECT_TRUE(is_alive(node, Time{1'000 + heartbeat_silence_max_ms}));
  EXPECT_FALSE(is_alive(node, Time{1'001 + heartbeat_silence_max_ms}));
}

TEST(Node, LivesThoughItsClockIsAhead) {
  EXPECT_TRUE(is_alive(node_that_beat_at(90'000), Time{1'000}));
}

TEST(Node, StaysDeadOnceFencedThoughItBeatsAgain) {
  Node node = node_that_beat_at(1'000);
  node.fenced_at = Time{900};
  EXPECT_FALSE(is_alive(node, Time{1'000}));
}

}  // namespace
}  // namespace berth::core
