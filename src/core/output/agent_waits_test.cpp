#include "core/output/agent_waits.hpp"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

constexpr std::string_view retry =
    R"({"type":"system","subtype":"api_retry","attempt":1,"error_status":null})"
    "\n";
constexpr std::string_view reconnect =
    R"~({"type":"error","message":"Reconnecting... waiting for network (x)"})~"
    "\n";

Time at(std::int64_t ms) {
  return Time{} + ms;
}

TEST(AgentWaitsTest, CountsFromTheFirstRetry) {
  AgentWaits waits{AdapterType::claude_local};
  waits.push("{\"type\":\"system\",\"subtype\":\"init\"}\n", at(1));
  EXPECT_FALSE(waits.since());
  waits.push(retry, at(5));
  waits.push(retry, at(9));
  EXPECT_EQ(waits.since(), at(5));
}

TEST(AgentWaitsTest, ForgetsTheWaitWhenTheProgramGoesOn) {
  AgentWaits waits{AdapterType::codex_local};
  waits.push(reconnect, at(5));
  EXPECT_EQ(waits.since(), at(5));
  waits.push("{\"type\":\"item.completed\"}\n", at(6));
  EXPECT_FALSE(waits.since());
}

TEST(AgentWaitsTest, ReadsLinesThatComeInPieces) {
  AgentWaits waits{AdapterType::codex_local};
  for (const char c : reconnect) waits.push(std::string_view{&c, 1}, at(5));
  EXPECT_EQ(waits.since(), at(5));
}

TEST(AgentWaitsTest, TakesALineWithoutEndForNothing) {
  AgentWaits waits{AdapterType::claude_local};
  const std::string much(1 << 20, 'x');
  for (int i = 0; i < 64; ++i) waits.push(much, at(i));
  EXPECT_FALSE(waits.since());
  waits.push("\n", at(99));
  waits.push(retry, at(100));
  EXPECT_EQ(waits.since(), at(100));
}

TEST(AgentWaitsTest, KnowsNothingOfPlainProcesses) {
  AgentWaits waits{AdapterType::process};
  waits.push(retry, at(5));
  EXPECT_FALSE(waits.since());
}

}  // namespace
}  // namespace berth::core
