#include "core/output/transcript.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

constexpr auto run_id_text = "0190b5d2-7c3e-7abc-8def-0123456789ab";

RunEventRecord event(std::string type, std::string message, bj::object payload = {}) {
  return {.company_id = CompanyId::parse(run_id_text).value(),
          .run_id = RunId::parse(run_id_text).value(),
          .seq = 3,
          .event_type = std::move(type),
          .message = std::move(message),
          .payload = std::move(payload)};
}

TEST(Transcript, HasACallWithItsCommandAndItsResult) {
  const auto call = transcript_entry(
      event("agent.tool_call", "Bash: ls",
            {{"id", "t1"}, {"name", "Bash"}, {"command", "ls"}, {"input", {{"command", "ls"}}}}));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->kind, TranscriptKind::tool_call);
  EXPECT_EQ(call->tool_name, "Bash");
  EXPECT_EQ(call->command, "ls");
  EXPECT_EQ(call->tool_id, "t1");
  const auto result = transcript_entry(
      event("agent.tool_result", "", {{"id", "t1"}, {"content", "a.txt"}, {"exitCode", 2}}));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, "a.txt");
  EXPECT_EQ(result->exit_code, 2);
  EXPECT_EQ(result->tool_id, "t1");
}

TEST(Transcript, ReadsTheEventsOfOlderServers) {
  const auto call = transcript_entry(
      event("agent.tool_call", "Bash", {{"id", "t1"}, {"input", {{"command", "ls"}}}}));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->tool_name, "Bash");
  EXPECT_EQ(call->command, std::nullopt);
}

TEST(Transcript, JoinsTheTextsOfAResult) {
  const auto result =
      transcript_entry(event("agent.tool_result", "",
                             {{"content", bj::array{{{"type", "text"}, {"text", "one"}},
                                                    {{"type", "image"}},
                                                    {{"type", "text"}, {"text", "two"}}}}}));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, "one\ntwo");
}

TEST(Transcript, BeginsWithThePromptAndLeavesOutWhatIsNotWork) {
  const auto prompt =
      transcript_entry(event("adapter.invoke", "Started claude", {{"prompt", "do it"}}));
  ASSERT_TRUE(prompt);
  EXPECT_EQ(prompt->kind, TranscriptKind::prompt);
  EXPECT_EQ(prompt->text, "do it");
  EXPECT_FALSE(transcript_entry(event("adapter.invoke", "Started make")));
  EXPECT_FALSE(transcript_entry(event("lifecycle", "The command runs")));
  EXPECT_FALSE(transcript_entry(event("agent.session", "s-1")));
  EXPECT_FALSE(transcript_entry(event("agent.result", "repeats the message")));
  RunEventRecord warning = event("lifecycle", "The session is unknown");
  warning.level = EventLevel::warn;
  EXPECT_EQ(transcript_entry(warning)->kind, TranscriptKind::notice);
}

TEST(Transcript, HasTheNumbersOfItsRun) {
  core::Run run{.id = RunId::parse(run_id_text).value(),
                .company_id = CompanyId::parse(run_id_text).value()};
  run.result_json = bj::object{{"model", "opus"},
                               {"result", "Done."},
                               {"costUsd", 0.25},
                               {"usage", {{"inputTokens", 10}, {"outputTokens", 3}}}};
  const Transcript out = transcript_of(run);
  EXPECT_EQ(out.model, "opus");
  EXPECT_EQ(out.result, "Done.");
  EXPECT_EQ(out.cost_usd, 0.25);
  EXPECT_EQ(out.usage, (AgentUsage{10, 0, 3}));
}

}  // namespace
}  // namespace berth::core
