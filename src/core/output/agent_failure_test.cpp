#include "core/output/agent_failure.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The error for what a program printed before it failed.
Error explained(AdapterType adapter, std::string_view out, std::string err = {},
                std::vector<std::string> denials = {}) {
  AgentOutput output{adapter};
  output.push(out);
  output.finish();
  const auto found = explain_failure({.adapter = adapter,
                                      .outcome = output.outcome(),
                                      .signs = output.signs(),
                                      .stderr_text = std::move(err),
                                      .denials = std::move(denials)});
  return found ? *found : Error{Errc::bug, "nothing was said"};
}

Error claude_result(std::string_view text, std::string_view more = "") {
  return explained(AdapterType::claude_local,
                   R"({"type":"result","subtype":"success","is_error":true,)" + std::string{more} +
                       R"("result":)" + encode_text(bj::value(bj::string(text))) + "}");
}

Error codex_failed(std::string_view text) {
  return explained(AdapterType::codex_local, R"({"type":"turn.failed","error":{"message":)" +
                                                 encode_text(bj::value(bj::string(text))) + "}}");
}

// Texts printed by Claude Code 2.1 and Codex 0.156 to 0.166.
TEST(AgentFailure, HasACodeForEachKnownCause) {
  const std::pair<Errc, Error> cases[] = {
      {Errc::agent_key_refused, claude_result("Invalid API key \u00b7 Fix external API key")},
      {Errc::agent_key_refused, claude_result("Not logged in \u00b7 Please run /login")},
      {Errc::agent_key_refused,
       codex_failed("unexpected status 401 Unauthorized: no such key, url: http://x/v1/responses")},
      {Errc::agent_key_refused, codex_failed("Missing environment variable: `OPENAI_API_KEY`.")},
      {Errc::agent_quota_exceeded, claude_result("Credit balance is too low")},
      {Errc::agent_quota_exceeded,
       claude_result("API Error: Request rejected (429) \u00b7 slow down")},
      {Errc::agent_quota_exceeded,
       codex_failed("exceeded retry limit, last status: 429 Too Many Requests")},
      {Errc::agent_model_overloaded,
       claude_result("API Error: Repeated 529 Overloaded errors. The API is at capacity")},
      {Errc::agent_model_overloaded, codex_failed("Selected model is at capacity. Try another")},
      {Errc::agent_model_unknown, claude_result("There's an issue with the selected model (X). It "
                                                "may not exist or you may not have access")},
      {Errc::agent_model_unreachable,
       claude_result("API Error: Connection refused \u2014 a firewall or proxy may be blocking it "
                     "(ConnectionRefused)")},
      {Errc::agent_model_unreadable,
       claude_result("API Error: API returned an empty or malformed response (HTTP 200) \u2014 "
                     "check for a proxy or gateway intercepting the request")},
      {Errc::agent_model_unreadable,
       codex_failed("stream disconnected before completion: UTF8 error: invalid utf-8 sequence of "
                    "1 bytes from index 0")},
      {Errc::agent_model_unreadable,
       codex_failed("stream disconnected before completion: stream closed before "
                    "response.completed")},
      {Errc::agent_model_unknown,
       codex_failed("unexpected status 404 Not Found: model: nope, url: http://x/v1/responses")},
      {Errc::agent_egress_denied,
       claude_result("Failed to authenticate. API Error: 403 {\"error\":\"no rule of egress.allow "
                     "allows api.anthropic.com:443\",\"code\":\"forbidden\"}")},
      {Errc::agent_turn_limit,
       explained(AdapterType::claude_local,
                 R"({"type":"result","subtype":"error_max_turns","is_error":true,)"
                 R"x("errors":["Reached maximum number of turns (1)"]})x")},
      {Errc::agent_session_lost,
       explained(AdapterType::claude_local,
                 R"({"type":"result","subtype":"error_during_execution","is_error":true,)"
                 R"("errors":["No conversation found with session ID: 4e52357e"]})")},
      {Errc::agent_session_lost,
       explained(AdapterType::codex_local, "",
                 "Error: thread/resume: thread/resume failed: no rollout found for thread id "
                 "01a1e508 (code -32600)\n")},
      {Errc::agent_root_refused,
       explained(AdapterType::claude_local, "",
                 "--dangerously-skip-permissions cannot be used with root/sudo privileges for "
                 "security reasons\n")},
      {Errc::agent_instructions_missing,
       explained(AdapterType::claude_local, "",
                 "Error: Append system prompt file not found: /AGENTS.md\n")},
  };
  for (const auto& [code, error] : cases) {
    EXPECT_EQ(name_of(error.code), name_of(code)) << error.message;
    EXPECT_FALSE(error.remedy.empty()) << error.message;
    EXPECT_THAT(error.message, HasSubstr(": ")) << "a lead, and the words of the program";
  }
}

TEST(AgentFailure, IsReadFromTheMostExactSource) {
  const std::string warned = R"({"type":"error","message":"Reconnecting... waiting for network"})"
                             "\n";
  EXPECT_THAT(explained(AdapterType::codex_local, warned, "WARNING: a folder\n").message,
              HasSubstr("Reconnecting... waiting for network"));
  EXPECT_THAT(explained(AdapterType::codex_local,
                        warned + R"({"type":"turn.failed","error":{"message":"it broke"}})", "no\n")
                  .message,
              StartsWith("it broke"));
  EXPECT_EQ(explained(AdapterType::codex_local, "", "first\n\x1b[31mlast\x1b[0m\n\n").message,
            "last");
  EXPECT_EQ(explained(AdapterType::codex_local, "").code, Errc::bug);
}

TEST(AgentFailure, NamesTheHostThatIsDeniedAlsoWhenTheProgramSaysNothing) {
  const Error error = explained(AdapterType::claude_local, "", "", {"api.example.org:443"});
  EXPECT_EQ(error.code, Errc::agent_egress_denied);
  EXPECT_THAT(error.message, HasSubstr("api.example.org:443"));
  EXPECT_EQ(explained(AdapterType::claude_local, "").code, Errc::bug) << "nothing to explain";
}

TEST(AgentFailure, NamesTheHostThatIsDenied) {
  const Error error =
      explained(AdapterType::codex_local,
                R"({"type":"error","message":"Reconnecting... waiting for network"})", "",
                {"no rule of egress.allow allows api.openai.com:443"});
  EXPECT_EQ(error.code, Errc::agent_egress_denied);
  EXPECT_THAT(error.message, HasSubstr("api.openai.com:443"));
}

TEST(AgentFailure, ReadsTheMessageOutOfABody) {
  const Error error = codex_failed(
      "{\n  \"error\": {\n \"message\": \"The tool is wrong.\",\n \"type\": \"invalid\" }\n}");
  EXPECT_EQ(error.message, "The tool is wrong");
  EXPECT_EQ(error.code, Errc::command_failed);
}

TEST(AgentFailure, DoesNotTakeAFullDiskForTheModelsQuota) {
  const Error error =
      explained(AdapterType::codex_local, "", "Error: Disk quota exceeded (os error 122)\n");
  EXPECT_EQ(error.code, Errc::command_failed);
  EXPECT_EQ(error.message, "Error: Disk quota exceeded (os error 122)");
}

TEST(AgentFailure, CutsWhatAServerSaysWithoutEnd) {
  const Error error = codex_failed(std::string(100'000, 'x'));
  EXPECT_LE(error.message.size(), 1100U);
}

TEST(AgentFailure, KnowsAStatusWithoutWords) {
  EXPECT_EQ(claude_result("API Error", R"("api_error_status":401,)").code, Errc::agent_key_refused);
}

}  // namespace
}  // namespace berth::core
