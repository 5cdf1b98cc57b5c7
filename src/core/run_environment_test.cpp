#include "core/run_environment.hpp"

#include "core/values_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace berth::core {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr std::string_view secret_id = "77777777-0000-4000-8000-000000000000";

RunFacts run_facts() {
  return {.company_id = id_of<CompanyId>('1'),
          .run_id = id_of<RunId>('2'),
          .agent_id = id_of<AgentId>('3'),
          .api_url = "http://127.0.0.1:3100",
          .workspace = WorkspaceFacts{.cwd = "/work/space", .branch = "main"}};
}

EnvLayer layer(SecretTarget owner, bj::object vars) {
  return {.owner = owner, .owner_id = "owner-1", .vars = std::move(vars)};
}

bj::object secret_ref() {
  return {{"type", "secret_ref"}, {"secretId", secret_id}, {"version", 3}};
}

RunEnvironment built_environment(const std::vector<EnvLayer>& layers,
                                 const RunFacts& of = run_facts()) {
  auto out = build_run_environment(of, layers);
  EXPECT_TRUE(out) << out.error().message;
  return out ? *std::move(out) : RunEnvironment{};
}

TEST(RunEnvironment, HoldsDefaultsAndWhatBerthAssignsAndNothingElse) {
  ::setenv("LEAK_FROM_SERVER", "1", 1);
  const RunEnvironment env = built_environment({});
  std::vector<std::string> names;
  for (const auto& [name, value] : env.plain) names.push_back(name);
  EXPECT_THAT(
      names, UnorderedElementsAre("PATH", "HOME", "LANG", "TERM", "PAPERCLIP_COMPANY_ID",
                                  "BERTH_COMPANY_ID", "PAPERCLIP_RUN_ID", "BERTH_RUN_ID",
                                  "PAPERCLIP_AGENT_ID", "BERTH_AGENT_ID", "PAPERCLIP_API_URL",
                                  "BERTH_API_URL", "PAPERCLIP_WORKSPACE_CWD", "BERTH_WORKSPACE_CWD",
                                  "PAPERCLIP_WORKSPACE_BRANCH", "BERTH_WORKSPACE_BRANCH"));
  EXPECT_EQ(env.plain.at("PAPERCLIP_RUN_ID"), run_facts().run_id.str());
  EXPECT_EQ(env.plain.at("BERTH_WORKSPACE_CWD"), "/work/space");
  EXPECT_THAT(env.token_names, ElementsAre("PAPERCLIP_API_KEY", "BERTH_API_KEY"));
}

TEST(RunEnvironment, LeavesAPlaceWithVariablesOfItsOwnToThem) {
  RunFacts foreign = run_facts();
  foreign.path = "";
  const auto built_environment = build_run_environment(foreign, {});
  ASSERT_TRUE(built_environment) << built_environment.error().message;
  for (const char* name : {"HOME", "PATH", "LANG", "TERM"}) {
    EXPECT_FALSE(built_environment->plain.contains(name)) << name;
  }
  EXPECT_THAT(built_environment->plain, Contains(Key("PAPERCLIP_RUN_ID")));
  foreign.home = "/home/agent";
  EXPECT_EQ(build_run_environment(foreign, {})->plain.at("HOME"), "/home/agent");
  const EnvLayer chosen = layer(SecretTarget::environment, {{"PATH", "/opt/bin"}});
  EXPECT_EQ(build_run_environment(foreign, {chosen})->plain.at("PATH"), "/opt/bin");
}

TEST(RunEnvironment, LetsTheLaterLayerWin) {
  const RunEnvironment env =
      built_environment({layer(SecretTarget::environment, {{"A", "1"}, {"B", "1"}}),
                         layer(SecretTarget::agent, {{"A", "2"}, {"C", "2"}}),
                         layer(SecretTarget::run, {{"A", "3"}, {"PATH", "/opt"}})});
  EXPECT_EQ(env.plain.at("A"), "3");
  EXPECT_EQ(env.plain.at("B"), "1");
  EXPECT_EQ(env.plain.at("C"), "2");
  EXPECT_EQ(env.plain.at("PATH"), "/opt");
}

TEST(RunEnvironment, SaysWhichNameNeedsWhichSecretOfWhom) {
  const RunEnvironment env =
      built_environment({layer(SecretTarget::agent, {{"DB_URL", secret_ref()}})});
  EXPECT_THAT(env.secrets, ElementsAre(SecretVariable{.name = "DB_URL",
                                                      .ref = {*SecretId::parse(secret_id), "3"},
                                                      .owner = SecretTarget::agent,
                                                      .owner_id = "owner-1",
                                                      .config_path = "env.DB_URL"}));
  EXPECT_THAT(env.plain, Not(Contains(Key("DB_URL"))));
}

TEST(RunEnvironment, LetsAPlainValueReplaceASecretAndASecretAPlainValue) {
  const RunEnvironment env = built_environment(
      {layer(SecretTarget::environment, {{"A", secret_ref()}, {"B", "plain"}}),
       layer(SecretTarget::run,
             {{"A", bj::object{{"type", "plain"}, {"value", "now plain"}}}, {"B", secret_ref()}})});
  EXPECT_EQ(env.plain.at("A"), "now plain");
  ASSERT_EQ(env.secrets.size(), 1U);
  EXPECT_EQ(env.secrets[0].name, "B");
  EXPECT_THAT(env.plain, Not(Contains(Key("B"))));
}

TEST(RunEnvironment, NeverTakesATokenFromConfig) {
  const RunEnvironment env = built_environment({layer(
      SecretTarget::agent, {{"PAPERCLIP_API_KEY", "stolen"}, {"BERTH_API_KEY", secret_ref()}})});
  EXPECT_THAT(env.plain, Not(Contains(Key("PAPERCLIP_API_KEY"))));
  EXPECT_THAT(env.secrets, IsEmpty());
  EXPECT_THAT(env.ignored, UnorderedElementsAre("PAPERCLIP_API_KEY", "BERTH_API_KEY"));
}

TEST(RunEnvironment, KeepsConfiguredNamesOfOursOnlyWhereBerthAssignsNone) {
  const RunEnvironment env =
      built_environment({layer(SecretTarget::run, {{"PAPERCLIP_RUN_ID", "forged"},
                                                   {"BERTH_RUN_ID", secret_ref()},
                                                   {"PAPERCLIP_CUSTOM", "kept"}})});
  EXPECT_EQ(env.plain.at("PAPERCLIP_RUN_ID"), run_facts().run_id.str());
  EXPECT_EQ(env.plain.at("BERTH_RUN_ID"), run_facts().run_id.str());
  EXPECT_EQ(env.plain.at("PAPERCLIP_CUSTOM"), "kept");
  EXPECT_THAT(env.secrets, IsEmpty());
  EXPECT_THAT(env.ignored, UnorderedElementsAre("PAPERCLIP_RUN_ID", "BERTH_RUN_ID"));
}

TEST(RunEnvironment, GivesNoTokenWhereTheServerCannotBeReached) {
  RunFacts alone = run_facts();
  alone.api_url.reset();
  const RunEnvironment env = built_environment({}, alone);
  EXPECT_THAT(env.token_names, IsEmpty());
  EXPECT_THAT(env.plain, Not(Contains(Key("PAPERCLIP_API_URL"))));
}

TEST(RunEnvironment, PointsTemporaryFilesAtTheScratchFolderUnlessToldOtherwise) {
  RunFacts with_scratch = run_facts();
  with_scratch.scratch_dir = "/tmp/run";
  const RunEnvironment env =
      built_environment({layer(SecretTarget::agent, {{"TMP", "/elsewhere"}})}, with_scratch);
  EXPECT_EQ(env.plain.at("TMPDIR"), "/tmp/run");
  EXPECT_EQ(env.plain.at("TEMP"), "/tmp/run");
  EXPECT_EQ(env.plain.at("TMP"), "/elsewhere");
  EXPECT_EQ(env.plain.at("PAPERCLIP_SCRATCH_DIR"), "/tmp/run");
}

TEST(RunEnvironment, TellsAProgramWhetherItHasATerminal) {
  RunFacts with_terminal = run_facts();
  with_terminal.has_terminal = true;
  EXPECT_EQ(built_environment({}, with_terminal).plain.at("TERM"), "xterm-256color");
  EXPECT_EQ(built_environment({}).plain.at("TERM"), "dumb");
}

TEST(RunEnvironment, RefusesNamesAndValuesThatNoProcessCanHave) {
  const std::string nul{"a\0b", 3};
  for (const bj::object& vars :
       {bj::object{{"1X", "v"}}, bj::object{{"A=B", "v"}}, bj::object{{"", "v"}},
        bj::object{{"A", nul}}, bj::object{{"A", 5}}, bj::object{{"A", nullptr}}}) {
    const auto out = build_run_environment(run_facts(), {layer(SecretTarget::run, vars)});
    ASSERT_FALSE(out) << encode_text(vars);
    EXPECT_EQ(out.error().code, Errc::unprocessable);
    EXPECT_THAT(out.error().issues.front().path, HasSubstr("/run/env"));
  }
}

TEST(RunEnvironment, RefusesWhatIsTooLargeForAProcess) {
  const std::string large(variable_bytes_max, 'x');
  const auto one = build_run_environment(run_facts(), {layer(SecretTarget::run, {{"BIG", large}})});
  ASSERT_FALSE(one);
  EXPECT_THAT(one.error().message, HasSubstr("'BIG'"));
  bj::object many;
  for (int i = 0; i < 20; ++i) many["V" + std::to_string(i)] = std::string(100'000, 'x');
  const auto all = build_run_environment(run_facts(), {layer(SecretTarget::run, many)});
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Errc::unprocessable);
}

TEST(RunEnvironment, ShowsTheNamesOfAllVariablesAndOnlyItsOwnValuesInItsEvent) {
  RunFacts with_repository = run_facts();
  with_repository.workspace->repo_url = "https://me:pw-in-url@git.example/x";
  const RunEnvironment env = built_environment(
      {layer(SecretTarget::environment, {{"HOME", "/configured"}, {"DSN", "db://u:pw@h/d"}}),
       layer(SecretTarget::agent, {{"BERTH_CUSTOM", "custom"}, {"BERTH_RUN_ID", "forged"}}),
       layer(SecretTarget::run,
             {{"DB", secret_ref()}, {"MY_TOKEN", "plain-token"}, {"MODE", "fast"}})},
      with_repository);
  const bj::object shown = shown_environment(env);
  for (const char* name : {"HOME", "DSN", "BERTH_CUSTOM", "DB", "MY_TOKEN", "MODE", "BERTH_API_KEY",
                           "PAPERCLIP_API_KEY", "BERTH_WORKSPACE_REPO_URL"}) {
    ASSERT_TRUE(shown.contains(name)) << name;
    EXPECT_EQ(shown.at(name), "***REDACTED***") << name;
  }
  EXPECT_EQ(shown.at("LANG"), "C.UTF-8");
  EXPECT_EQ(shown.at("TERM"), "dumb");
  EXPECT_EQ(shown.at("PATH"), bj::string(env.plain.at("PATH")));
  EXPECT_EQ(shown.at("BERTH_RUN_ID"), bj::string(run_facts().run_id.str()));
  EXPECT_EQ(shown.at("PAPERCLIP_WORKSPACE_CWD"), "/work/space");
  for (const char* value : {"/configured", "u:pw", "custom", "plain-token", "fast", "pw-in-url"}) {
    EXPECT_THAT(encode_text(shown), Not(HasSubstr(value)));
  }
}

}  // namespace
}  // namespace berth::core
