#include "engine/plugins/plugin_events.hpp"

#include <gtest/gtest.h>

namespace berth::engine {
namespace {

constexpr const char* company = "0b5f1c7e-0000-4000-8000-000000000001";
constexpr const char* agent = "0b5f1c7e-0000-4000-8000-00000000000a";

core::Activity happened(std::string action) {
  return {.id = *core::EventId::parse("0b5f1c7e-0000-4000-8000-0000000000e1"),
          .company_id = *core::CompanyId::parse(company),
          .actor_id = "somebody",
          .action = std::move(action),
          .entity_type = "run",
          .entity_id = "r-1",
          .agent_id = {},
          .run_id = {},
          .details = {{"projectId", "p-1"}},
          .created_at = Time{1'000}};
}

EventRequest request(bj::object filter, std::string pattern = "run.*") {
  const Result<EventRequest> read =
      parse_event_request({{"eventPattern", pattern}, {"filter", std::move(filter)}});
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(EventRequest{});
}

TEST(PluginEvents, APatternIsANameOrTheBeginningOfOne) {
  EXPECT_TRUE(wants(request({}, "run.started"), happened("run.started")));
  EXPECT_FALSE(wants(request({}, "run.started"), happened("run.started.late")));
  EXPECT_TRUE(wants(request({}), happened("run.started")));
  EXPECT_FALSE(wants(request({}), happened("runs.started")));
  EXPECT_FALSE(wants(request({}), happened("run")));
  for (const char* wrong : {"", "*", ".*", "a*", "a.*.b", "a.**"}) {
    EXPECT_FALSE(parse_event_request({{"eventPattern", wrong}})) << wrong;
  }
  EXPECT_FALSE(parse_event_request({{"eventPattern", std::string(300, 'a')}}));
}

TEST(PluginEvents, AFilterLetsNothingThroughThatItDoesNotName) {
  EXPECT_TRUE(wants(request({{"companyId", company}}), happened("run.started")));
  EXPECT_FALSE(wants(request({{"companyId", agent}}), happened("run.started")));
  EXPECT_TRUE(wants(request({{"projectId", "p-1"}}), happened("run.started")));
  EXPECT_FALSE(wants(request({{"projectId", "p-2"}}), happened("run.started")));
  EXPECT_FALSE(wants(request({{"agentId", agent}}), happened("run.started")));
  core::Activity by_agent = happened("run.started");
  by_agent.agent_id = core::AgentId::parse(agent).value();
  EXPECT_TRUE(wants(request({{"agentId", agent}}), by_agent));
  for (const bj::object& unknown : {bj::object{{"moon", "full"}}, bj::object{{"companyId", 3}}}) {
    EXPECT_FALSE(parse_event_request({{"eventPattern", "run.*"}, {"filter", unknown}}));
  }
}

TEST(PluginEvents, WhatHappenedBeforeTheWishIsNoNews) {
  EventRequest late = request({});
  late.since = Time{1'001};
  EXPECT_FALSE(wants(late, happened("run.started")));
  late.since = Time{1'000};
  EXPECT_TRUE(wants(late, happened("run.started")));
}

TEST(PluginEvents, AnEventHasTheFieldsOfTheProtocol) {
  const bj::object event = to_event(happened("run.started"));
  EXPECT_EQ(event.at("eventType").as_string(), "run.started");
  EXPECT_EQ(event.at("companyId").as_string(), company);
  EXPECT_EQ(event.at("occurredAt").as_string(), "1970-01-01T00:00:01.000Z");
  EXPECT_EQ(event.at("payload").at("projectId").as_string(), "p-1");
}

}  // namespace
}  // namespace berth::engine
