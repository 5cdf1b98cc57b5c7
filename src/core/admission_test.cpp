#include "core/admission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace berth::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <class I>
I numbered_id(int number) {
  std::string digits = std::to_string(number);
  return *I::parse("00000000-0000-4000-8000-" + std::string(12 - digits.size(), '0') + digits);
}

QueuedRun run(int id, std::optional<int> agent, std::optional<int> environment = {}) {
  QueuedRun out{.id = numbered_id<RunId>(id), .company_id = numbered_id<CompanyId>(1)};
  if (agent) out.agent_id = numbered_id<AgentId>(*agent);
  if (environment) out.environment_id = numbered_id<EnvironmentId>(*environment);
  return out;
}

QueuedRun run_of_company(int id, int company) {
  return {.id = numbered_id<RunId>(id), .company_id = numbered_id<CompanyId>(company)};
}

std::vector<int> numbers(const std::vector<RunId>& ids) {
  std::vector<int> out;
  for (const RunId& id : ids) out.push_back(std::stoi(id.str().substr(24)));
  return out;
}

Agent agent_with(bj::object runtime_config) {
  return {.id = numbered_id<AgentId>(1),
          .company_id = numbered_id<CompanyId>(1),
          .name = "a",
          .role = "r",
          .title = {},
          .adapter_config = {},
          .runtime_config = std::move(runtime_config),
          .default_environment_id = {},
          .metadata = {},
          .last_heartbeat_at = {},
          .created_at = {},
          .updated_at = {}};
}

Environment environment_with(bj::object config, std::optional<bj::object> metadata) {
  return {.id = numbered_id<EnvironmentId>(1),
          .company_id = numbered_id<CompanyId>(1),
          .name = "e",
          .description = {},
          .config = std::move(config),
          .env_vars = {},
          .metadata = std::move(metadata),
          .created_at = {},
          .updated_at = {}};
}

TEST(RunLimit, OfAnAgentIsFrom1To50AndElse20) {
  const auto limit = [](const bj::value& value) {
    return run_limit_of(agent_with({{"heartbeat", bj::object{{"maxConcurrentRuns", value}}}}));
  };
  EXPECT_EQ(limit(10), 10);
  EXPECT_EQ(limit(0), 1);
  EXPECT_EQ(limit(-5), 1);
  EXPECT_EQ(limit(51), 50);
  EXPECT_EQ(limit(1e300), 50);
  EXPECT_EQ(limit(2.9), 2);
  EXPECT_EQ(limit("10"), 20);
  EXPECT_EQ(run_limit_of(agent_with({})), 20);
  EXPECT_EQ(run_limit_of(agent_with({{"heartbeat", 5}})), 20);
}

TEST(RunLimit, OfAnEnvironmentIsInItsConfigOrItsMetadata) {
  const bj::object two{{"maxConcurrentRuns", 2}};
  const bj::object three{{"maxConcurrentRuns", 3}};
  EXPECT_EQ(run_limit_of(environment_with(two, three)), 2);
  EXPECT_EQ(run_limit_of(environment_with({}, three)), 3);
  EXPECT_EQ(run_limit_of(environment_with({}, std::nullopt)), std::nullopt);
  EXPECT_EQ(run_limit_of(environment_with({{"maxConcurrentRuns", 0}}, std::nullopt)), std::nullopt);
}

TEST(Admission, StartsWhatFitsInTheOrderOfTheQueue) {
  RunCapacity capacity;
  capacity.agents[numbered_id<AgentId>(1)] = {.running = 1, .limit = 3};
  const std::vector<QueuedRun> queue{run(1, 1), run(2, 1), run(3, 1), run(4, 2)};
  const Admission out = admit(queue, capacity);
  EXPECT_THAT(numbers(out.start), ElementsAre(1, 2, 4));
  ASSERT_EQ(out.wait.size(), 1U);
  EXPECT_EQ(out.wait[0].id, numbered_id<RunId>(3));
  EXPECT_EQ(out.wait[0].place.reason, WaitReason::agent_limit);
  EXPECT_EQ(out.wait[0].place.position, 1);
  EXPECT_THAT(out.wait[0].place.explanation, HasSubstr("3 of 3"));
}

TEST(Admission, CountsPlacesAmongRunsThatWaitForTheSameThing) {
  RunCapacity capacity;
  capacity.agents[numbered_id<AgentId>(1)] = {.running = 1, .limit = 1};
  capacity.environments[numbered_id<EnvironmentId>(7)] = {.running = 2, .limit = 2};
  const std::vector<QueuedRun> queue{run(1, 1), run(2, 2, 7), run(3, 1, 7), run(4, {}, 7)};
  const Admission out = admit(queue, capacity);
  EXPECT_THAT(out.start, IsEmpty());
  const auto places = [&] {
    std::vector<std::pair<WaitReason, std::int64_t>> list;
    for (const WaitingRun& wait : out.wait) {
      list.emplace_back(wait.place.reason, wait.place.position);
    }
    return list;
  }();
  EXPECT_THAT(places, ElementsAre(std::pair{WaitReason::agent_limit, 1L},
                                  std::pair{WaitReason::environment_limit, 1L},
                                  std::pair{WaitReason::agent_limit, 2L},
                                  std::pair{WaitReason::environment_limit, 2L}));
}

TEST(Admission, DoesNotLetAWaitingRunTakeAPlaceOfWhatItHas) {
  RunCapacity capacity;
  capacity.agents[numbered_id<AgentId>(1)] = {.running = 0, .limit = 1};
  capacity.environments[numbered_id<EnvironmentId>(7)] = {.running = 1, .limit = 1};
  const std::vector<QueuedRun> queue{run(1, 1, 7), run(2, 1)};
  EXPECT_THAT(numbers(admit(queue, capacity).start), ElementsAre(2));
}

TEST(Admission, TellsAPausedAgentBeforeEveryLimit) {
  RunCapacity capacity{.server = {.running = 5, .limit = 5}};
  capacity.agents[numbered_id<AgentId>(1)] = {.running = 1, .limit = 1, .is_paused = true};
  const std::vector<QueuedRun> queue{run(1, 1), run(2, 2)};
  const Admission out = admit(queue, capacity);
  ASSERT_EQ(out.wait.size(), 2U);
  EXPECT_EQ(out.wait[0].place.reason, WaitReason::agent_paused);
  EXPECT_EQ(out.wait[1].place.reason, WaitReason::server_limit);
}

TEST(Admission, GivesTheNextPlaceToTheCompanyThatHasTheFewestRunning) {
  RunCapacity capacity{.server = {.running = 3, .limit = 7}};
  capacity.companies[numbered_id<CompanyId>(1)] = 2;
  capacity.companies[numbered_id<CompanyId>(2)] = 1;
  std::vector<QueuedRun> queue;
  for (int i = 1; i <= 20; ++i) queue.push_back(run_of_company(i, 1));
  for (int i = 21; i <= 23; ++i) queue.push_back(run_of_company(i, 2));
  queue.push_back(run_of_company(24, 3));
  const Admission out = admit(queue, capacity);
  EXPECT_THAT(numbers(out.start), ElementsAre(24, 21, 1, 22)) << "at two each, the oldest";
  ASSERT_EQ(out.wait.size(), 20U);
  EXPECT_EQ(out.wait[0].id, numbered_id<RunId>(2)) << "at three each, the oldest";
  EXPECT_EQ(out.wait[1].id, numbered_id<RunId>(23));
  EXPECT_EQ(out.wait[2].id, numbered_id<RunId>(3));
  EXPECT_EQ(out.wait[2].place.position, 3);
}

TEST(Admission, ARunThatWaitsForItsAgentCostsItsCompanyNoTurn) {
  RunCapacity capacity{.server = {.running = 0, .limit = 2}};
  capacity.agents[numbered_id<AgentId>(1)] = {.running = 0, .limit = 1, .is_paused = true};
  const std::vector<QueuedRun> queue{run(1, 1), run(2, 1), run_of_company(3, 2),
                                     run_of_company(4, 2), run(5, {})};
  EXPECT_THAT(numbers(admit(queue, capacity).start), ElementsAre(3, 5));
}

TEST(Admission, NeverPassesALimitAndLeavesNoFreePlaceUnused) {
  std::mt19937 random{11};
  const auto below = [&](int limit) { return static_cast<int>(random() % unsigned(limit)); };
  for (int round = 0; round < 500; ++round) {
    RunCapacity capacity{.server = {.running = below(4), .limit = below(12)}};
    for (int i = 0; i < 3; ++i) {
      capacity.agents[numbered_id<AgentId>(i)] = {.running = below(3), .limit = 1 + below(4)};
      capacity.environments[numbered_id<EnvironmentId>(i)] = {.running = below(3),
                                                              .limit = 1 + below(4)};
    }
    std::vector<QueuedRun> queue;
    for (int i = 0; i < 12; ++i) queue.push_back(run(i, below(4), below(4)));
    const Admission out = admit(queue, capacity);
    ASSERT_EQ(out.start.size() + out.wait.size(), queue.size());
    RunCapacity after = capacity;
    std::vector<QueuedRun> rest;
    for (const QueuedRun& each : queue) {
      if (std::ranges::find(out.start, each.id) == out.start.end()) {
        rest.push_back(each);
        continue;
      }
      ASSERT_FALSE(after.server.is_full() || after.agents[*each.agent_id].is_full() ||
                   after.environments[*each.environment_id].is_full());
      ++after.server.running;
      ++after.agents[*each.agent_id].running;
      ++after.environments[*each.environment_id].running;
    }
    EXPECT_THAT(admit(rest, after).start, IsEmpty()) << "what waits has something to wait for";
    for (const WaitingRun& wait : out.wait) EXPECT_FALSE(wait.place.explanation.empty());
  }
}

TEST(Admission, ASandboxWithoutRoomInItsCompanyWaitsAndOthersDoNot) {
  const auto company = [](int n) { return numbered_id<CompanyId>(n); };
  const SandboxShare big{.memory_mb = 600, .sandboxes = 1};
  const std::vector<QueuedRun> queue{
      {.id = numbered_id<RunId>(1), .company_id = company(1), .share = big},
      {.id = numbered_id<RunId>(2), .company_id = company(1), .share = big},
      {.id = numbered_id<RunId>(3), .company_id = company(2), .share = big},
      {.id = numbered_id<RunId>(4), .company_id = company(1), .share = {.memory_mb = 100}}};
  RunCapacity capacity;
  capacity.rooms[company(1)].limit = {.memory_mb = 1000};
  const Admission out = admit(queue, capacity);
  EXPECT_THAT(out.start, testing::UnorderedElementsAre(queue[0].id, queue[2].id, queue[3].id));
  ASSERT_EQ(out.wait.size(), 1U);
  EXPECT_EQ(out.wait[0].id, queue[1].id);
  EXPECT_EQ(out.wait[0].place.reason, WaitReason::company_quota);
  EXPECT_THAT(out.wait[0].place.explanation, HasSubstr("of 1000 MB of memory"));
}

TEST(Admission, LetsOneRunAtATimeWorkWithASession) {
  RunCapacity capacity{.server = {.running = 0, .limit = 100}};
  capacity.agents[numbered_id<AgentId>(1)] = {.limit = 20, .keeps_sessions = true};
  capacity.agents[numbered_id<AgentId>(2)] = {.limit = 20};
  QueuedRun fresh = run(3, 1, 1);
  fresh.begins_fresh = true;
  const std::vector<QueuedRun> queue{run(1, 1, 1), run(2, 1, 1), fresh,
                                     run(4, 1, 2), run(5, 2, 1), run(6, 2, 1)};
  const Admission admission = admit(queue, capacity);
  EXPECT_THAT(numbers(admission.start), ElementsAre(1, 3, 4, 5, 6));
  ASSERT_EQ(admission.wait.size(), 1U);
  EXPECT_THAT(admission.wait[0].place.explanation, HasSubstr("works with its session"));
}

}  // namespace
}  // namespace berth::core
