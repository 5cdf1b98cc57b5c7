#include "core/output/agent_output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = AgentEventKind;

struct Read {
  std::vector<AgentEvent> events;
  AgentOutcome outcome;
  AgentSigns signs = {};
};

Read read(AdapterType adapter, std::string_view text, std::size_t chunk_size = 1UL << 30) {
  AgentOutput output{adapter};
  Read out;
  const auto keep = [&](std::vector<AgentEvent> events) {
    std::ranges::move(events, std::back_inserter(out.events));
  };
  for (; !text.empty(); text.remove_prefix(std::min(chunk_size, text.size()))) {
    keep(output.push(text.substr(0, chunk_size)));
  }
  keep(output.finish());
  out.outcome = output.outcome();
  out.signs = output.signs();
  return out;
}

std::vector<Kind> kinds(const Read& read) {
  std::vector<Kind> out;
  for (const AgentEvent& event : read.events) out.push_back(event.kind);
  return out;
}

constexpr std::string_view claude_text =
    R"({"type":"system","subtype":"init","session_id":"s-1","model":"opus","tools":["Bash"]})"
    "\n"
    R"({"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},)"
    R"({"type":"text","text":"I look."},)"
    R"({"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]},"session_id":"s-1"})"
    "\r\n"
    R"({"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1",)"
    R"("content":"a.txt","is_error":false}]},"session_id":"s-1"})"
    "\n\n"
    R"({"type":"result","subtype":"success","is_error":false,"result":"Done.","num_turns":2,)"
    R"("total_cost_usd":0.25,"session_id":"s-2","usage":{"input_tokens":10,)"
    R"("cache_read_input_tokens":7,"output_tokens":3}})";

TEST(ClaudeOutput, BecomesEvents) {
  const Read out = read(AdapterType::claude_local, claude_text);
  EXPECT_THAT(kinds(out), ElementsAre(Kind::session, Kind::thinking, Kind::assistant,
                                      Kind::tool_call, Kind::tool_result, Kind::result));
  EXPECT_EQ(out.events[2].message, "I look.");
  EXPECT_EQ(out.events[3].message, "Bash: ls");
  EXPECT_EQ(out.events[3].payload.at("name"), "Bash");
  EXPECT_EQ(out.events[3].payload.at("command"), "ls");
  EXPECT_EQ(out.events[3].payload.at("input").at("command"), "ls");
  EXPECT_EQ(out.events[4].message, "a.txt");
  EXPECT_EQ(out.events[4].payload.at("content"), "a.txt");
  EXPECT_EQ(out.outcome.session_id, "s-1") << "the first event has it";
  EXPECT_EQ(out.outcome.model, "opus");
  EXPECT_EQ(out.outcome.result, "Done.");
  EXPECT_EQ(out.outcome.cost_usd, 0.25);
  EXPECT_EQ(out.outcome.usage, (AgentUsage{10, 7, 3}));
  EXPECT_EQ(out.outcome.error, std::nullopt);
}

TEST(ClaudeOutput, CountsWhatItsSubagentsUsed) {
  const Read out =
      read(AdapterType::claude_local,
           R"({"type":"result","subtype":"success","is_error":false,"result":"x",)"
           R"("usage":{"input_tokens":22,"output_tokens":26},"modelUsage":{)"
           R"("a":{"inputTokens":30,"outputTokens":40,"cacheReadInputTokens":5,)"
           R"("cacheCreationInputTokens":6},"b":{"inputTokens":14,"outputTokens":12}}})");
  EXPECT_EQ(out.outcome.usage, (AgentUsage{44, 5, 52, 6}));
}

TEST(ClaudeOutput, TakesTheReasonOfAFailureFromItsErrors) {
  const Read out = read(AdapterType::claude_local,
                        R"({"type":"result","subtype":"error_during_execution","is_error":true,)"
                        R"("session_id":"4e52357e-0000-4000-8000-000000000000","errors":)"
                        R"(["No conversation found with session ID: 4e52357e"]})");
  EXPECT_EQ(out.outcome.error, "No conversation found with session ID: 4e52357e");
  EXPECT_EQ(out.outcome.session_id, std::nullopt) << "it is the one that is missing";
}

TEST(ClaudeOutput, WarnsOfRetriesAndDenials) {
  const Read out =
      read(AdapterType::claude_local,
           R"({"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,)"
           R"("retry_delay_ms":500,"error_status":401,"error":"authentication_failed"})"
           "\n"
           R"({"type":"system","subtype":"permission_denied","tool_name":"Write",)"
           R"("tool_use_id":"t9","message":"blocked"})");
  ASSERT_THAT(kinds(out), ElementsAre(Kind::notice, Kind::notice));
  EXPECT_EQ(out.events[0].level, EventLevel::warn);
  EXPECT_EQ(out.events[0].message,
            "The model answered with status 401 (authentication_failed); "
            "the program tries again, 2 of 10");
  EXPECT_EQ(out.events[1].level, EventLevel::warn);
  EXPECT_EQ(out.events[1].message, "Permission denied for Write: blocked");
  EXPECT_EQ(out.signs.status, 401);
}

TEST(ClaudeOutput, MarksTheLinesOfASubagent) {
  const Read out = read(AdapterType::claude_local,
                        R"({"type":"assistant","parent_tool_use_id":"t1","message":{"content":[)"
                        R"({"type":"tool_use","id":"t2","name":"Read","input":)"
                        R"({"file_path":"/a"}}]}})");
  ASSERT_THAT(kinds(out), ElementsAre(Kind::tool_call));
  EXPECT_EQ(out.events[0].message, "Read: /a");
  EXPECT_EQ(out.events[0].payload.at("parentId"), "t1");
}

TEST(AgentOutput, IsQuietAboutKindsOfLinesThatSayNothingToPeople) {
  for (const std::string_view line :
       {R"({"type":"system","subtype":"task_started"})", R"({"type":"system","subtype":"status"})",
        R"({"type":"rate_limit_event"})", R"({"type":"turn.started"})",
        R"({"type":"item.updated","item":{"type":"todo_list"}})",
        R"({"type":"of a later version"})"}) {
    for (const AdapterType adapter : {AdapterType::claude_local, AdapterType::codex_local}) {
      EXPECT_THAT(read(adapter, line).events, IsEmpty()) << line;
    }
  }
}

TEST(ClaudeOutput, TellsAnErrorFromAResult) {
  const Read out = read(AdapterType::claude_local,
                        R"({"type":"result","subtype":"error_max_turns","is_error":true})");
  EXPECT_THAT(kinds(out), ElementsAre(Kind::error));
  EXPECT_EQ(out.events[0].level, EventLevel::error);
  EXPECT_EQ(out.outcome.error, "error_max_turns");
}

constexpr std::string_view codex_text =
    R"({"type":"thread.started","thread_id":"th-1"})"
    "\n"
    R"({"type":"turn.started"})"
    "\n"
    R"({"type":"item.started","item":{"id":"i0","type":"command_execution","command":"ls"}})"
    "\n"
    R"({"type":"item.completed","item":{"id":"i0","type":"command_execution","command":"ls",)"
    R"("aggregated_output":"a.txt\n","exit_code":0}})"
    "\n"
    R"({"type":"item.completed","item":{"id":"i1","type":"reasoning","text":"hm"}})"
    "\n"
    R"({"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"Done."}})"
    "\n"
    R"({"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":7,)"
    R"("output_tokens":3}})"
    "\n";

TEST(CodexOutput, BecomesEvents) {
  const Read out = read(AdapterType::codex_local, codex_text);
  EXPECT_THAT(kinds(out), ElementsAre(Kind::session, Kind::tool_call, Kind::tool_result,
                                      Kind::thinking, Kind::assistant, Kind::result));
  EXPECT_EQ(out.events[1].message, "shell: ls");
  EXPECT_EQ(out.events[2].message, "a.txt\n");
  EXPECT_EQ(out.events[2].payload.at("exitCode"), 0);
  EXPECT_EQ(out.outcome.session_id, "th-1");
  EXPECT_EQ(out.outcome.result, "Done.");
  EXPECT_EQ(out.outcome.usage, (AgentUsage{10, 7, 3}));
}

TEST(CodexOutput, FailsByItsTurnAlone) {
  const std::string_view reconnects =
      R"x({"type":"error","message":"Reconnecting... 1/5 (stream disconnected)"})x";
  const Read went_on =
      read(AdapterType::codex_local, std::string{reconnects} + "\n" + std::string{codex_text});
  EXPECT_EQ(went_on.outcome.error, std::nullopt);
  EXPECT_EQ(went_on.events[0].kind, Kind::notice);
  EXPECT_EQ(went_on.events[0].level, EventLevel::warn);
  EXPECT_EQ(went_on.signs.warning, "Reconnecting... 1/5 (stream disconnected)");
  const Read failed =
      read(AdapterType::codex_local,
           std::string{codex_text} + R"({"type":"turn.failed","error":{"message":"no quota"}})");
  EXPECT_EQ(failed.outcome.error, "no quota");
  EXPECT_EQ(failed.events.back().kind, Kind::error);
}

Read resumed(std::string_view session) {
  AgentOutput output{AdapterType::codex_local,
                     SessionUsage{"th-1", AgentUsage{40, 20, 6, 1}, "gpt"}};
  Read out;
  out.events =
      output.push(R"({"type":"thread.started","thread_id":")" + std::string{session} + "\"}\n" +
                  R"({"type":"turn.completed","usage":{"input_tokens":86,)"
                  R"("cached_input_tokens":40,"output_tokens":12}})"
                  "\n");
  out.outcome = output.outcome();
  return out;
}

TEST(CodexOutput, CountsWhatARunAddsToItsSession) {
  const Read same = resumed("th-1");
  EXPECT_EQ(same.outcome.usage, (AgentUsage{46, 20, 6, 0}));
  EXPECT_EQ(same.outcome.session_usage, (AgentUsage{86, 40, 12, 0}));
  EXPECT_EQ(same.outcome.model, "gpt");
  const Read other = resumed("th-2");
  EXPECT_EQ(other.outcome.usage, (AgentUsage{86, 40, 12, 0})) << "a session that began anew";
  EXPECT_EQ(other.outcome.model, std::nullopt);
}

TEST(CodexOutput, HasAResultForEachCall) {
  const Read out = read(
      AdapterType::codex_local,
      R"({"type":"item.started","item":{"id":"i1","type":"file_change","status":"in_progress",)"
      R"("changes":[{"path":"/w/a","kind":"add"}]}})"
      "\n"
      R"({"type":"item.completed","item":{"id":"i1","type":"file_change","status":"completed",)"
      R"("changes":[{"path":"/w/a","kind":"add"}]}})"
      "\n"
      R"({"type":"item.started","item":{"id":"i2","type":"mcp_tool_call","server":"s","tool":"t"}})"
      "\n"
      R"({"type":"item.completed","item":{"id":"i2","type":"mcp_tool_call","server":"s","tool":"t",)"
      R"("status":"failed","error":{"message":"no such tool"}}})"
      "\n"
      R"({"type":"item.completed","item":{"id":"i3","type":"web_search","query":"berth"}})");
  ASSERT_THAT(kinds(out), ElementsAre(Kind::tool_call, Kind::tool_result, Kind::tool_call,
                                      Kind::tool_result, Kind::tool_result));
  EXPECT_EQ(out.events[0].message, "file_change: add /w/a");
  EXPECT_EQ(out.events[1].message, "completed");
  EXPECT_EQ(out.events[2].message, "mcp_tool_call: s.t");
  EXPECT_EQ(out.events[3].message, "no such tool");
  EXPECT_EQ(out.events[3].level, EventLevel::warn);
  EXPECT_EQ(out.events[4].payload.at("command"), "berth");
}

TEST(CodexOutput, ReadsALineOfSeveralMebibytes) {
  const std::string output(5UL << 20, 'y');
  const Read out = read(AdapterType::codex_local,
                        R"({"type":"item.completed","item":{"id":"i0","type":"command_execution",)"
                        R"("command":"cat","exit_code":0,"aggregated_output":")" +
                            output + R"("}})",
                        64UL << 10);
  ASSERT_THAT(kinds(out), ElementsAre(Kind::tool_result));
  EXPECT_LE(encode_text(out.events[0].payload).size(), event_text_bytes_max + 512);
}

TEST(AgentOutput, IsTheSameForEveryChunkSize) {
  for (const auto& [adapter, text] : {std::pair{AdapterType::claude_local, claude_text},
                                      std::pair{AdapterType::codex_local, codex_text}}) {
    const Read whole = read(adapter, text);
    for (std::size_t size = 1; size < 200; ++size) {
      ASSERT_EQ(read(adapter, text, size).events, whole.events) << size;
    }
  }
}

TEST(AgentOutput, KeepsWhatItDoesNotKnowAsRawOutput) {
  const auto expect_raw = [](AdapterType adapter, std::string_view line) {
    const Read out = read(adapter, line);
    ASSERT_THAT(kinds(out), ElementsAre(Kind::raw)) << line;
    EXPECT_EQ(out.events[0].message, as_utf8(line));
  };
  for (const std::string_view line : {"plain words", "{", "{\"type\":", "[1,2]", "{}",
                                      R"({"type":5})", "null", "\x1b[31mred", "{\"a\":\"\xff\"}"}) {
    expect_raw(AdapterType::claude_local, line);
    expect_raw(AdapterType::codex_local, line);
  }
  expect_raw(AdapterType::claude_local, R"({"type":"assistant"})");
  expect_raw(AdapterType::claude_local, R"({"type":"assistant","message":{"content":"text"}})");
  expect_raw(AdapterType::codex_local, R"({"type":"item.completed"})");
  expect_raw(AdapterType::codex_local, R"({"type":"item.completed","item":[]})");
  expect_raw(AdapterType::codex_local, R"({"type":"turn.failed","error":"x"})");
}

TEST(AgentOutput, CutsALineWithoutEndAndReadsTheNextOne) {
  AgentOutput output{AdapterType::codex_local};
  const std::string part(600'000, 'x');
  for (int i = 0; i < 50; ++i) ASSERT_THAT(output.push(part), IsEmpty());
  const auto events = output.push("\n{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].kind, Kind::notice);
  EXPECT_EQ(events[0].level, EventLevel::warn);
  EXPECT_THAT(events[0].message, HasSubstr("A line of 30000000 bytes is too long"));
  EXPECT_EQ(events[1].kind, Kind::raw);
  EXPECT_EQ(events[1].message.size(), event_text_bytes_max);
  EXPECT_EQ(events[2].kind, Kind::session);
}

TEST(AgentOutput, TakesLongOnlyWhereALongLineEnds) {
  AgentOutput output{AdapterType::codex_local};
  const std::string part(600'000, 'x');
  EXPECT_FALSE(output.would_take_long(part)) << "nothing is parsed before the line ends";
  output.push(part);
  EXPECT_FALSE(output.would_take_long("x"));
  EXPECT_TRUE(output.would_take_long("x\n"));
  output.push("\n");
  EXPECT_FALSE(output.would_take_long("x\n"));
}

TEST(AgentOutput, DoesNotReadAnObjectOutOfALineThatWasCut) {
  const std::string line =
      R"({"type":"thread.started","thread_id":"t"})" + std::string(agent_line_bytes_max, ' ') + "x";
  const Read out = read(AdapterType::codex_local, line);
  EXPECT_THAT(kinds(out), ElementsAre(Kind::notice, Kind::raw));
  EXPECT_EQ(out.outcome.session_id, std::nullopt);
}

TEST(AgentOutput, BoundsWhatAnEventHolds) {
  const std::string head =
      R"({"type":"assistant","message":{"content":[{"type":"tool_use","name":"W","input":{"t":")";
  const std::string line = head + std::string(200'000, 'y') + R"("}}]}})";
  const Read out = read(AdapterType::claude_local, line);
  ASSERT_THAT(kinds(out), ElementsAre(Kind::tool_call));
  EXPECT_LE(encode_text(out.events[0].payload).size(), event_text_bytes_max * 2 + 256);
}

TEST(AgentOutput, HasNoTextThatCannotBeStored) {
  const Read claude = read(AdapterType::claude_local,
                           R"({"type":"system","subtype":"init","session_id":"a\u0000b",)"
                           R"("model":"m\u0000"})"
                           "\n"
                           R"({"type":"result","is_error":true,"result":"bad\u0000thing"})"
                           "\n"
                           R"({"type":"assistant","message":{"content":[{"type":"tool_use",)"
                           R"("id":"t\u0000","name":"B\u0000","input":1}]}})");
  EXPECT_EQ(claude.outcome.session_id, std::nullopt);
  EXPECT_EQ(claude.outcome.model, "m?");
  EXPECT_EQ(claude.outcome.result, "bad?thing");
  EXPECT_EQ(claude.outcome.error, "bad?thing");
  ASSERT_THAT(kinds(claude), ElementsAre(Kind::session, Kind::error, Kind::tool_call));
  EXPECT_EQ(claude.events[1].message, "bad?thing");
  EXPECT_EQ(claude.events[2].message, "B?");
  EXPECT_EQ(claude.events[2].payload.at("name"), "B?");
  EXPECT_EQ(claude.events[2].payload.at("id"), "t?");

  const Read codex =
      read(AdapterType::codex_local, R"({"type":"item.completed","item":{"type":"agent_message",)"
                                     R"("text":"a\u0000"}})"
                                     "\n"
                                     R"({"type":"turn.failed","error":{"message":"b\u0000"}})");
  EXPECT_EQ(codex.outcome.result, "a?");
  EXPECT_EQ(codex.outcome.error, "b?");
  const std::string raw{"no\0json", 7};
  EXPECT_EQ(read(AdapterType::codex_local, raw).events.at(0).message, "no?json");
}

TEST(AgentOutput, BoundsWhatIsKnownAtItsEnd) {
  const std::string much(500'000, 'y');
  const Read out = read(
      AdapterType::claude_local,
      R"({"type":"system","subtype":"init","model":")" + much + "\"}\n" +
          R"({"type":"result","is_error":true,"total_cost_usd":1e300,"result":")" + much + "\"}");
  EXPECT_EQ(out.outcome.model->size(), agent_name_bytes_max);
  EXPECT_EQ(out.outcome.result->size(), result_bytes_max);
  EXPECT_EQ(out.outcome.error->size(), event_text_bytes_max);
  EXPECT_EQ(out.outcome.cost_usd, std::nullopt);
}

TEST(AgentOutput, TakesOnlyAnIdForASession) {
  const auto session = [](AdapterType adapter, std::string_view id) {
    const std::string text = encode_text(bj::value(bj::string(id)));
    return read(adapter, adapter == AdapterType::claude_local
                             ? R"({"type":"system","subtype":"init","session_id":)" + text + "}"
                             : R"({"type":"thread.started","thread_id":)" + text + "}");
  };
  const std::string longest(session_id_bytes_max, 'x');
  const std::string too_long = longest + "x";
  for (const AdapterType adapter : {AdapterType::claude_local, AdapterType::codex_local}) {
    for (const std::string_view id : {std::string_view{"0198c1f2-77aa-7d10-b3f2-1d1f5d2c9a00"},
                                      std::string_view{"Th.1_a:b-"}, std::string_view{longest}}) {
      EXPECT_EQ(session(adapter, id).outcome.session_id, id);
    }
    for (const std::string_view id :
         {std::string_view{"--dangerously-skip-permissions"}, std::string_view{"-"},
          std::string_view{""}, std::string_view{"a b"}, std::string_view{"a/b"},
          std::string_view{"a=b"}, std::string_view{"a\n"}, std::string_view{"\xc3\xa4"},
          std::string_view{"a\0b", 3}, std::string_view{too_long}}) {
      const Read out = session(adapter, id);
      EXPECT_EQ(out.outcome.session_id, std::nullopt) << id;
      ASSERT_THAT(kinds(out), ElementsAre(Kind::session)) << id;
      EXPECT_EQ(out.events[0].message, "");
      EXPECT_TRUE(out.events[0].payload.at("sessionId").is_null());
    }
  }
  const Read claude =
      read(AdapterType::claude_local, R"({"type":"system","subtype":"init","session_id":"s-1"})"
                                      "\n"
                                      R"({"type":"result","result":"x","session_id":"--resume"})");
  EXPECT_EQ(claude.outcome.session_id, "s-1") << "as if it had said none";
}

TEST(AgentOutput, OfAProcessIsNotLookedAt) {
  EXPECT_THAT(read(AdapterType::process, claude_text).events, IsEmpty());
}

TEST(AgentOutput, TakesNoNonsenseForACount) {
  const Read out =
      read(AdapterType::codex_local,
           R"({"type":"turn.completed","usage":{"input_tokens":-4,"output_tokens":1e300,)"
           R"("cached_input_tokens":"9"}})");
  EXPECT_EQ(out.outcome.usage, AgentUsage{});
}

}  // namespace
}  // namespace berth::core
