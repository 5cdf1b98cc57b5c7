#include "core/rows/run.hpp"

#include "base/json/json_schema.hpp"
#include "core/values_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;

Run some_run() {
  Run run{.id = id_of<RunId>('1'), .company_id = id_of<CompanyId>('2')};
  run.command = RunCommand{.argv = {"make", "-j2"}, .env_names = {"CI"}, .timeout_ms = 60'000};
  run.phases = {{.phase = RunPhase::queued, .started_at = Time{5}}};
  return run;
}

std::vector<std::string> keys_of(const bj::value& value) {
  std::vector<std::string> keys;
  for (const auto& member : value.as_object()) keys.emplace_back(member.key());
  return keys;
}

TEST(Run, HasTheKeysOfAHeartbeatRunOnTheWire) {
  EXPECT_THAT(keys_of(encode(some_run())), IsSupersetOf({"id",
                                                         "companyId",
                                                         "agentId",
                                                         "environmentId",
                                                         "invocationSource",
                                                         "triggerDetail",
                                                         "status",
                                                         "startedAt",
                                                         "finishedAt",
                                                         "error",
                                                         "errorCode",
                                                         "exitCode",
                                                         "signal",
                                                         "usageJson",
                                                         "resultJson",
                                                         "contextSnapshot",
                                                         "logBytes",
                                                         "retryOfRunId",
                                                         "processPid",
                                                         "createdAt",
                                                         "updatedAt"}));
}

TEST(Run, SurvivesTheWayToJsonAndBack) {
  const core::Run run = some_run();
  const auto back = decode_text<core::Run>(encode_text(run));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(encode_text(*back), encode_text(run));
}

TEST(Run, SaysItsStreamsAsTheyAreSpelledOnTheWire) {
  EXPECT_EQ(name_of(EventStream::stdout_), "stdout");
  EXPECT_EQ(name_of(OutputStream::stderr_), "stderr");
}

TEST(RunDetail, IsTheRowAndItsPlaceInTheQueue) {
  RunDetail detail{some_run(), QueuePlace{.position = 3, .reason = WaitReason::agent_limit}};
  const bj::value json = encode(detail);
  EXPECT_EQ(json.at("command").at("argv").at(0), "make");
  EXPECT_EQ(json.at("queue").at("position"), 3);
  EXPECT_EQ(json.at("queue").at("reason"), "agent_limit");
  SchemaBook book{"#/components/schemas/"};
  book.schema<RunDetail>();
  EXPECT_TRUE(book.components().at("RunDetail").at("properties").as_object().contains("queue"));
}

TEST(RunPhases, FollowEachOtherWithoutAGap) {
  std::vector<PhaseTimes> phases;
  enter_phase(phases, RunPhase::queued, Time{10});
  enter_phase(phases, RunPhase::acquire, Time{20});
  enter_phase(phases, RunPhase::execute, Time{30});
  end_phases(phases, Time{40});
  const std::vector<PhaseTimes> expected{
      {RunPhase::queued, Time{10}, Time{20}},
      {RunPhase::acquire, Time{20}, Time{30}},
      {RunPhase::execute, Time{30}, Time{40}},
  };
  EXPECT_EQ(phases, expected);
}

TEST(RunPhases, AreEnteredOnceThoughTheServerStartsAgain) {
  std::vector<PhaseTimes> phases;
  enter_phase(phases, RunPhase::execute, Time{10});
  enter_phase(phases, RunPhase::execute, Time{500});
  ASSERT_EQ(phases.size(), 1U);
  EXPECT_EQ(phases[0].started_at, Time{10});
  EXPECT_FALSE(phases[0].finished_at);
}

TEST(RunPhases, NeverEndBeforeTheyBegin) {
  std::vector<PhaseTimes> phases;
  enter_phase(phases, RunPhase::queued, Time{100});
  end_phases(phases, Time{7});
  EXPECT_EQ(phases[0].finished_at, Time{100});
}

TEST(RunPhases, EndOnlyOnce) {
  std::vector<PhaseTimes> phases;
  end_phases(phases, Time{1});
  EXPECT_TRUE(phases.empty());
  enter_phase(phases, RunPhase::queued, Time{1});
  end_phases(phases, Time{2});
  end_phases(phases, Time{3});
  EXPECT_EQ(phases[0].finished_at, Time{2});
}

TEST(EnvironmentChoiceOfARun, NamesTheEnvironmentForEveryReason) {
  const Environment environment{.id = id_of<EnvironmentId>('3'),
                                .company_id = id_of<CompanyId>('2'),
                                .name = "Staging",
                                .description = {},
                                .config = {},
                                .env_vars = {},
                                .metadata = {},
                                .created_at = {},
                                .updated_at = {}};
  std::vector<std::string> sentences;
  for (const ChoiceReason reason : all<ChoiceReason>()) {
    const ChosenEnvironment chosen = explain_choice(environment, reason);
    EXPECT_EQ(chosen.environment_id, environment.id);
    EXPECT_EQ(chosen.reason, reason);
    EXPECT_THAT(chosen.explanation, HasSubstr("'Staging'"));
    EXPECT_THAT(sentences, testing::Not(testing::Contains(chosen.explanation)));
    sentences.push_back(chosen.explanation);
  }
}

}  // namespace
}  // namespace berth::core
