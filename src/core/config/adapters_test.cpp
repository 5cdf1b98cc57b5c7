#include "core/config/adapters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

InvocationFacts facts() {
  return {.prompt_facts = {{"agent", bj::object{{"id", "a-1"}, {"name", "Ada"}}},
                           {"run", bj::object{{"id", "r-1"}, {"attempt", 2}}}}};
}

Invocation built(AdapterType adapter, const bj::object& config,
                 const InvocationFacts& with = facts()) {
  auto out = build_invocation(adapter, config, with);
  EXPECT_TRUE(out) << out.error().message;
  return out ? *std::move(out) : Invocation{.argv = {}};
}

TEST(ProcessAdapter, RunsTheCommandWithItsArgumentsAndNoInput) {
  const Invocation out = built(AdapterType::process, {{"command", "make"},
                                                      {"args", {"-j2", "a b", "$HOME; rm"}},
                                                      {"cwd", "/src"},
                                                      {"timeoutSec", 1.5},
                                                      {"graceSec", 3}});
  const Invocation expected{.argv = {"make", "-j2", "a b", "$HOME; rm"},
                            .shown_argv = {"make", "-j2", "a b", "$HOME; rm"},
                            .cwd = "/src",
                            .timeout_ms = 1500,
                            .grace_ms = 3000};
  EXPECT_EQ(out, expected);
}

TEST(ProcessAdapter, HasNoTimeoutAndFifteenSecondsOfGraceUnlessTold) {
  const Invocation out = built(AdapterType::process, {{"command", "true"}, {"timeoutSec", 0}});
  EXPECT_EQ(out.timeout_ms, std::nullopt);
  EXPECT_EQ(out.grace_ms, 15'000);
  EXPECT_EQ(built(AdapterType::process, {{"command", "true"}, {"graceSec", 0}}).grace_ms, 1000);
}

TEST(ProcessAdapter, GivesItsTemplateOnStdinWhenItHasOne) {
  EXPECT_EQ(built(AdapterType::process, {{"command", "cat"}, {"promptTemplate", "{{run.id}}\n"}})
                .stdin_text,
            "r-1\n");
}

InvocationFacts within(InvocationPlace place) {
  InvocationFacts with = facts();
  with.place = place;
  return with;
}

constexpr InvocationPlace host{};
constexpr InvocationPlace host_as_root{.is_root = true};
constexpr InvocationPlace sandbox{.is_sandbox = true};
constexpr InvocationPlace sandbox_as_root{.is_sandbox = true, .is_root = true};

TEST(ClaudeAdapter, BuildsItsCommandAndPutsThePromptOnStdin) {
  const Invocation out = built(AdapterType::claude_local, {});
  EXPECT_THAT(out.argv, ElementsAre("claude", "--print", "--output-format", "stream-json",
                                    "--verbose", "--dangerously-skip-permissions"));
  EXPECT_EQ(out.shown_argv, out.argv);
  EXPECT_THAT(out.stdin_text, HasSubstr("Ada"));
  EXPECT_THAT(out.stdin_text, HasSubstr("a-1"));
  EXPECT_EQ(out.environment.at("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1");
}

TEST(ClaudeAdapter, PassesEachSetting) {
  InvocationFacts with = facts();
  with.resume_session = "s-9";
  with.prompt = "do it";
  with.instructions_file = "Be brief.";
  const Invocation out = built(AdapterType::claude_local,
                               {{"command", "/opt/claude"},
                                {"model", "opus"},
                                {"effort", "high"},
                                {"maxTurnsPerRun", 7},
                                {"dangerouslySkipPermissions", true},
                                {"instructionsFilePath", "/AGENTS.md"},
                                {"instructions", "Be kind."},
                                {"extraArgs", {"--add-dir", "/x"}}},
                               with);
  const auto argv = [](const char* instructions) {
    return std::vector<std::string>{"/opt/claude",
                                    "--print",
                                    "--output-format",
                                    "stream-json",
                                    "--verbose",
                                    "--resume",
                                    "s-9",
                                    "--dangerously-skip-permissions",
                                    "--model",
                                    "opus",
                                    "--effort",
                                    "high",
                                    "--max-turns",
                                    "7",
                                    "--append-system-prompt",
                                    instructions,
                                    "--add-dir",
                                    "/x"};
  };
  EXPECT_EQ(out.argv, argv("Be brief.\n\nBe kind."));
  EXPECT_EQ(out.shown_argv, argv("[instructions, 19 bytes]"));
  EXPECT_EQ(out.stdin_text, "do it");
  EXPECT_EQ(out.prompt, "do it");
}

TEST(ClaudeAdapter, CanWorkInEveryPlaceUnlessToldOtherwise) {
  const auto permissions = [](const bj::object& config, InvocationPlace place) {
    const Invocation out = built(AdapterType::claude_local, config, within(place));
    return std::vector<std::string>(out.argv.begin() + 5, out.argv.end());
  };
  for (const InvocationPlace place : {host, sandbox, sandbox_as_root}) {
    EXPECT_THAT(permissions({}, place), ElementsAre("--dangerously-skip-permissions"));
  }
  EXPECT_THAT(permissions({}, host_as_root), ElementsAre("--permission-mode", "acceptEdits",
                                                         "--allowedTools", HasSubstr("Bash,Edit")));
  EXPECT_THAT(permissions({{"permissionMode", "plan"}}, sandbox),
              ElementsAre("--permission-mode", "plan"));
  EXPECT_THAT(permissions({{"permissionMode", "default"}}, host), IsEmpty());
  EXPECT_THAT(permissions({{"dangerouslySkipPermissions", false}}, host), IsEmpty());
  EXPECT_THAT(permissions({{"extraArgs", {"--allowedTools=Read"}}}, host),
              ElementsAre("--allowedTools=Read"));
}

TEST(ClaudeAdapter, SaysThatItIsInASandboxOnlyThere) {
  const auto is_told = [](InvocationPlace place) {
    return built(AdapterType::claude_local, {}, within(place)).environment.contains("IS_SANDBOX");
  };
  EXPECT_TRUE(is_told(sandbox));
  EXPECT_TRUE(is_told(sandbox_as_root));
  EXPECT_FALSE(is_told(host_as_root));
}

TEST(CodexAdapter, BuildsItsCommandAndReadsThePromptFromStdin) {
  const Invocation out = built(AdapterType::codex_local, {{"promptTemplate", "hello"}});
  EXPECT_THAT(out.argv, ElementsAre("codex", "exec", "--json", "--skip-git-repo-check", "-c",
                                    "features.plugins=false", "-c", "analytics.enabled=false",
                                    "--dangerously-bypass-approvals-and-sandbox", "-"));
  EXPECT_EQ(out.stdin_text, "hello");
}

TEST(CodexAdapter, PassesEachSetting) {
  InvocationFacts with = facts();
  with.resume_session = "t-1";
  const Invocation out = built(AdapterType::codex_local,
                               {{"model", "gpt-5"},
                                {"modelReasoningEffort", "high"},
                                {"search", true},
                                {"dangerouslyBypassApprovalsAndSandbox", true},
                                {"extraArgs", {"--color", "never"}}},
                               with);
  EXPECT_THAT(out.argv, ElementsAre("codex", "--search", "exec", "--json", "--skip-git-repo-check",
                                    "-c", "features.plugins=false", "-c", "analytics.enabled=false",
                                    "--dangerously-bypass-approvals-and-sandbox", "--model",
                                    "gpt-5", "-c", "model_reasoning_effort=\"high\"", "--color",
                                    "never", "resume", "t-1", "-"));
}

TEST(CodexAdapter, UsesItsOwnSandboxOnlyWhereOneCanBeMade) {
  const auto permissions = [](const bj::object& config, InvocationPlace place) {
    const Invocation out = built(AdapterType::codex_local, config, within(place));
    return std::vector<std::string>(out.argv.begin() + 8, out.argv.end() - 1);
  };
  const bj::object writes{{"permissionMode", "workspaceWrite"}};
  EXPECT_THAT(
      permissions(writes, host),
      ElementsAre("-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true"));
  EXPECT_THAT(permissions(writes, sandbox),
              ElementsAre("--dangerously-bypass-approvals-and-sandbox"));
  EXPECT_THAT(permissions({{"permissionMode", "workspaceWrite"}, {"networkAccess", false}}, host),
              ElementsAre("-s", "workspace-write"));
  EXPECT_THAT(permissions({{"permissionMode", "readOnly"}}, host), ElementsAre("-s", "read-only"));
  EXPECT_THAT(permissions({{"dangerouslyBypassApprovalsAndSandbox", false}}, host),
              testing::Contains("workspace-write"));
  EXPECT_THAT(permissions({{"extraArgs", {"-s", "read-only"}}}, host),
              ElementsAre("-s", "read-only"));
}

TEST(CodexAdapter, ReadsItsInstructionsInFrontOfThePrompt) {
  InvocationFacts with = facts();
  with.prompt = "do it";
  const Invocation out = built(AdapterType::codex_local, {{"instructions", "Be kind."}}, with);
  EXPECT_EQ(out.stdin_text, "Be kind.\n\ndo it");
  EXPECT_EQ(out.prompt, "do it");
}

TEST(Adapters, RefuseAnEmptyPrompt) {
  for (const AdapterType adapter : {AdapterType::claude_local, AdapterType::codex_local}) {
    InvocationFacts with = facts();
    with.prompt = " \n";
    const auto given = build_invocation(adapter, {{"instructions", "Be kind."}}, with);
    ASSERT_FALSE(given);
    EXPECT_EQ(given.error().code, Errc::unprocessable);
    EXPECT_EQ(given.error().message, "The prompt is empty");
    const auto rendered =
        build_invocation(adapter, {{"promptTemplate", "{{context.task}}"}}, facts());
    ASSERT_FALSE(rendered);
    EXPECT_EQ(rendered.error().message, "The prompt made of promptTemplate is empty");
  }
  EXPECT_TRUE(build_invocation(AdapterType::process, {{"command", "cat"}}, facts()));
}

TEST(Adapters, PassNoSessionThatCouldBeAnOption) {
  for (const AdapterType adapter : {AdapterType::claude_local, AdapterType::codex_local}) {
    const Invocation fresh = built(adapter, {});
    for (const char* session : {"--dangerously-skip-permissions", "-", "", "a b", "../x"}) {
      InvocationFacts with = facts();
      with.resume_session = session;
      EXPECT_EQ(built(adapter, {}, with), fresh) << session;
    }
  }
}

TEST(Argv, IsRefusedWhenNoProcessCanTakeIt) {
  const std::string nul{"a\0b", 3};
  const std::vector<std::vector<std::string>> wrong{
      {},
      {""},
      {"cat", nul},
      {"cat", std::string(argument_bytes_max + 1, 'x')},
      std::vector<std::string>(12, std::string(100'000, 'x'))};
  for (const auto& argv : wrong) {
    const auto out = check_argv(argv);
    ASSERT_FALSE(out) << argv.size();
    EXPECT_EQ(out.error().code, Errc::unprocessable);
    EXPECT_FALSE(out.error().remedy.empty());
  }
  EXPECT_TRUE(check_argv({"cat", "", std::string(argument_bytes_max, 'x')}));
  EXPECT_FALSE(build_invocation(AdapterType::process, {}, facts()));
}

TEST(PromptTemplate, FillsPathsAndLeavesTheRest) {
  const bj::object with = facts().prompt_facts;
  EXPECT_EQ(render_template("{{agent.id}}/{{ agent.name }}!", with), "a-1/Ada!");
  EXPECT_EQ(render_template("{{run.attempt}} {{run}}", with), R"(2 {"id":"r-1","attempt":2})");
  EXPECT_EQ(render_template("[{{agent.nothing}}{{nobody.id}}{{agent.id.deep}}]", with), "[]");
  EXPECT_EQ(render_template("{{ {{agent.id}}", with), "{{ a-1");
  EXPECT_EQ(render_template("{{{agent.id}}}", with), "{a-1}");
  EXPECT_EQ(render_template("{{}} {{a b}} {{agent.id", with), "{{}} {{a b}} {{agent.id");
  EXPECT_EQ(render_template("", with), "");
}

TEST(PromptTemplate, IsNoLongerThanAPrompt) {
  const bj::object with{{"long", std::string(200'000, 'x')}};
  std::string often;
  for (int i = 0; i < 60'000; ++i) often += "{{long}}";
  EXPECT_FALSE(render_template(often, with)) << "12 GB";
  EXPECT_EQ(render_template("{{long}}{{long}}", with)->size(), 400'000U);
}

TEST(PromptTemplate, TakesNoLongerForBracesThatNameNothing) {
  std::string braces(1'000'000, '{');
  braces += "}}";
  EXPECT_EQ(render_template(braces, {}), braces);
  std::string halves;
  for (int i = 0; i < 200'000; ++i) halves += "{{a ";
  halves += "}}";
  EXPECT_EQ(render_template(halves, {})->size(), halves.size() - 6);
}

TEST(PromptTemplate, DoesNotLookAgainAtWhatItFilledIn) {
  EXPECT_EQ(render_template("{{a}}", {{"a", "{{b}}"}, {"b", "no"}}), "{{b}}");
}

}  // namespace
}  // namespace berth::core
