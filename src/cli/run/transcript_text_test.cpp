#include "cli/run/transcript_text.hpp"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using core::AdapterType;

std::string shown(AdapterType adapter, std::string_view lines, TranscriptLook look = {}) {
  TranscriptText text{adapter, look};
  std::string out = text.push(lines);
  return out + text.finish();
}

TEST(TranscriptText, ShowsMessagesCallsAndResults) {
  EXPECT_EQ(
      shown(AdapterType::claude_local,
            R"({"type":"system","subtype":"init","session_id":"s-1","model":"opus"})"
            "\n"
            R"({"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},)"
            R"({"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash",)"
            R"("input":{"command":"ls\npwd"}}]}})"
            "\n"
            R"({"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1",)"
            R"("content":"a\nb"}]}})"
            "\n"
            R"({"type":"result","subtype":"success","result":"Done.","is_error":false})"
            "\n"),
      "  ~ hm\n"
      "I look.\n"
      "* Bash: ls\n"
      "    pwd\n"
      "  | a\n"
      "  | b\n");
}

TEST(TranscriptText, ShowsAFailedCommandAndAWarning) {
  EXPECT_EQ(shown(AdapterType::codex_local,
                  R"({"type":"error","message":"Reconnecting... 1/5"})"
                  "\n"
                  R"({"type":"item.completed","item":{"id":"i","type":"command_execution",)"
                  R"("command":"false","exit_code":1,"status":"failed","aggregated_output":""}})"
                  "\n"
                  "plain words"),
            "! Reconnecting... 1/5\n"
            "  | exit code 1\n"
            "plain words\n");
}

TEST(TranscriptText, CutsALongResultAndLetsNothingSteerTheTerminal) {
  EXPECT_EQ(shown(AdapterType::codex_local,
                  R"({"type":"item.completed","item":{"id":"i","type":"command_execution",)"
                  R"("command":"x","exit_code":0,"aggregated_output":"1\n2\u001b]0;x\n3\n4\n"}})",
                  {.result_lines_max = 2})
                .find('\x1b'),
            std::string::npos);
  EXPECT_EQ(shown(AdapterType::codex_local,
                  R"({"type":"item.completed","item":{"id":"i","type":"command_execution",)"
                  R"("command":"x","exit_code":0,"aggregated_output":"1\n2\n3\n4\n"}})",
                  {.result_lines_max = 2}),
            "  | 1\n  | 2\n  | ... 2 more lines\n");
}

TEST(TranscriptText, IndentsTheLinesOfASubagent) {
  EXPECT_EQ(shown(AdapterType::claude_local,
                  R"({"type":"assistant","parent_tool_use_id":"t1","message":{"content":[)"
                  R"({"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"/a"}}]}})"),
            "    * Read: /a\n");
}

TEST(TranscriptText, SumsUpTheNumbersOfARun) {
  const bj::value run{
      {"resultJson",
       {{"model", "opus"},
        {"costUsd", 0.25},
        {"usage", {{"inputTokens", 10}, {"cachedInputTokens", 4}, {"outputTokens", 3}}}}}};
  EXPECT_EQ(numbers_line(run), "opus, 10 tokens in, 4 from the cache, 3 out, $0.25");
  EXPECT_EQ(numbers_line(bj::value{{"resultJson", nullptr}}), "");
}

}  // namespace
}  // namespace berth::cli
