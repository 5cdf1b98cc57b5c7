#include "cli/cli.hpp"

#include "base/files.hpp"
#include "cli/cli_fixture.hpp"
#include "cli/completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

namespace berth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(CliTest, PrintsATableOrJson) {
  console_.out_is_terminal = true;
  console_.columns = 120;
  ASSERT_EQ(run({"env", "list", "--no-color"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("DRIVER  STATUS  DESCRIPTION"));
  EXPECT_THAT(out_.str(), HasSubstr("Local  local   active  -"));
  console_.out_is_terminal = false;
  ASSERT_EQ(run({"env", "list"}), 0);
  EXPECT_EQ(parse_json(out_.str()).value().at(0).at("name").as_string(), "Local");
  console_.out_is_terminal = true;
  ASSERT_EQ(run({"--json", "env", "list"}), 0);
  EXPECT_TRUE(parse_json(out_.str()));
}

TEST_F(CliTest, ANestedFieldIsSpreadOverLinesForPeople) {
  console_.out_is_terminal = true;
  ASSERT_EQ(run({"env", "get", environment, "--no-color"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("env vars  \n    {\n      \"A\": \"1\"\n    }\n"));
}

TEST_F(CliTest, AListWithoutPagesIsAskedForWithoutALimit) {
  answers_["GET /api/secrets/" + std::string{environment} + "/versions"] =
      http_answer(200, R"([{"number":1}])");
  ASSERT_EQ(run({"secret", "versions", environment}), 0) << err_.str();
  EXPECT_THAT(last().line, Not(HasSubstr("limit")));
}

TEST_F(CliTest, ASandboxThatIsKeptForReuseIsListedShownAndRemoved) {
  const std::string kept = "0190eeee-0000-7000-8000-000000000005";
  const std::string of_company = "GET /api/companies/" + std::string{company};
  const std::string row = R"({"id":")" + kept +
                          R"(","status":"idle","agentId":null,"environmentId":")" + environment +
                          R"(","provider":"linux","expiresAt":"2026-01-01T00:30:00.000Z"})";
  answers_[of_company + "/environment-leases"] = http_answer(200, "[]");
  answers_[of_company + "/sandboxes"] = http_answer(200, "[]");
  answers_[of_company + "/sandboxes?status=idle"] = http_answer(200, "[" + row + "]");
  ASSERT_EQ(run({"sandbox", "ls"}), 0) << err_.str();
  const bj::value listed = parse_json(out_.str()).value();
  ASSERT_EQ(listed.as_array().size(), 1U);
  EXPECT_EQ(listed.at(0).at("state").as_string(), "kept");
  EXPECT_EQ(listed.at(0).at("environment").as_string(), "Local");

  answers_["GET /api/environment-leases/" + kept] =
      http_answer(404, R"({"error":"Environment lease not found","code":"lease_not_found"})");
  answers_["GET /api/sandboxes/" + kept] = http_answer(200, row);
  ASSERT_EQ(run({"sandbox", "inspect", kept}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("2026-01-01T00:30:00.000Z"));
}

TEST_F(CliTest, RemovingASandboxAsksFirstAndEndsTheLeaseOfOneThatIsHeld) {
  const std::string lease = "0190dddd-0000-7000-8000-000000000004";
  const std::string kept = "0190eeee-0000-7000-8000-000000000005";
  const std::string of_company = "GET /api/companies/" + std::string{company};
  answers_[of_company + "/environment-leases"] = http_answer(
      200, R"([{"id":")" + lease + R"(","status":"retained","driver":"sandbox","sandboxId":"x"}])");
  answers_[of_company + "/sandboxes"] = http_answer(200, "[]");
  const std::string gone = R"({"status":"destroyed","nextStep":"Nothing."})";
  answers_["POST /api/environment-leases/" + lease + "/destroy"] = http_answer(200, gone);
  answers_["DELETE /api/sandboxes/" + kept] = http_answer(200, gone);
  EXPECT_EQ(run({"sandbox", "rm", lease}), 2) << "nobody has said yes";
  ASSERT_EQ(run({"sandbox", "rm", "0190dddd", "--yes"}), 0) << err_.str();
  EXPECT_THAT(last().line, HasSubstr("POST /api/environment-leases/" + lease + "/destroy"));

  answers_[of_company + "/environment-leases"] = http_answer(200, "[]");
  EXPECT_NE(run({"sandbox", "rm", kept, "--yes"}), 0);
  EXPECT_THAT(err_.str(), HasSubstr("berth sandbox ls"));
  answers_[of_company + "/sandboxes?status=idle"] =
      http_answer(200, R"([{"id":")" + kept + R"(","status":"idle"}])");
  ASSERT_EQ(run({"sandbox", "rm", kept, "--yes"}), 0) << err_.str();
  EXPECT_THAT(last().line, HasSubstr("DELETE /api/sandboxes/" + kept));
}

TEST_F(CliTest, WhatAnotherServerHoldsIsNeitherCountedNorForwardedToWithoutAWord) {
  const std::string lease = "0190dddd-0000-7000-8000-000000000004";
  const std::string of_company = "GET /api/companies/" + std::string{company};
  answers_[of_company + "/environment-leases"] = http_answer(
      200, R"([{"id":")" + lease + R"(","status":"active","driver":"sandbox","sandboxId":"x"}])");
  answers_["GET /api/environment-leases/" + lease + "/usage"] = http_answer(
      409, R"({"error":"Lease x is held by another server: server b","code":"conflict"})");
  ASSERT_EQ(run({"sandbox", "stats"}), 0) << err_.str();
  EXPECT_THAT(err_.str(), HasSubstr("left out: Lease x is held by another server: server b\n"));
  EXPECT_EQ(out_.str(), "[]\n");

  answers_["GET /api/environment-leases/" + lease] = http_answer(200, R"({"status":"active"})");
  EXPECT_NE(run({"sandbox", "port", lease, "80"}), 0);
  EXPECT_THAT(err_.str(), HasSubstr("is held by another server: server b"));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(CliTest, StatusListsTheServersForWhomMayAsk) {
  answers_["GET /api/health"] = http_answer(200, R"({"status":"ok"})");
  answers_["GET /api/health/ready"] = http_answer(200, R"({"status":"ready"})");
  ASSERT_EQ(run({"status"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), Not(HasSubstr("servers")));
  answers_["GET /api/instance/nodes"] = http_answer(200, R"([{"name":"alpha","url":"http://a:1",
      "startedAt":"2026-01-01T00:00:00.000Z","heartbeatAt":"2026-01-01T00:30:00.000Z"}])");
  ASSERT_EQ(run({"status"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("\"servers\""));
  EXPECT_THAT(out_.str(), HasSubstr("http://a:1"));
}

TEST_F(CliTest, AnExecWithJsonShowsTheAnswerAndEndsAsTheCommandDid) {
  const std::string lease = "0190dddd-0000-7000-8000-000000000004";
  answers_["GET /api/environment-leases/" + lease] = http_answer(200, R"({"status":"active"})");
  const std::string route = "POST /api/environment-leases/" + lease + "/exec";
  const auto exec = [&](const std::string& answer) {
    answers_[route] = http_answer(200, answer);
    return run({"--json", "exec", lease, "--", "true"});
  };
  EXPECT_EQ(exec(R"({"outcome":"signaled","exitCode":null,"signal":"SIGKILL","stdoutText":"x",
                     "isTruncated":true})"),
            137);
  const bj::value told = parse_json(out_.str()).value();
  EXPECT_TRUE(told.at("isTruncated").as_bool());
  EXPECT_EQ(told.at("stdoutText").as_string(), "x");
  EXPECT_EQ(exec(R"({"outcome":"exited","exitCode":5,"signal":null})"), 5);
  EXPECT_EQ(exec(R"({"outcome":"timed_out","exitCode":null,"signal":"SIGTERM"})"), 124);
  EXPECT_EQ(exec(R"({"outcome":"lost","exitCode":null,"signal":null})"), 125);
  EXPECT_EQ(exec(R"({"outcome":"exited","exitCode":0,"signal":null,"bytesLost":0})"), 0);
  EXPECT_THAT(err_.str(), Not(HasSubstr("lost")));
  EXPECT_EQ(exec(R"({"outcome":"exited","exitCode":0,"signal":null,"bytesLost":6})"), 125);
  EXPECT_THAT(err_.str(), HasSubstr("6 bytes of output were lost"));
}

TEST_F(CliTest, AnExecWhoseCommandFitsNoAddressIsRefusedWithAnotherWay) {
  const std::string lease = "0190dddd-0000-7000-8000-000000000004";
  answers_["GET /api/environment-leases/" + lease] = http_answer(200, R"({"status":"active"})");
  EXPECT_EQ(run({"exec", lease, "--", "sh", "-c", std::string(20'000, 'x')}), 125);
  EXPECT_THAT(err_.str(), HasSubstr("command_too_large"));
  EXPECT_THAT(err_.str(), HasSubstr("berth exec -i LEASE -- sh <SCRIPT"));
}

TEST_F(CliTest, ColourNeedsATerminalThatDidNotRefuse) {
  console_.out_is_terminal = true;
  run({"env", "list"});
  EXPECT_THAT(out_.str(), HasSubstr("\x1b["));
  console_.variables["NO_COLOR"] = "1";
  run({"env", "list"});
  EXPECT_THAT(out_.str(), Not(HasSubstr("\x1b[")));
}

TEST_F(CliTest, FindsAnObjectByNameAndByTheStartOfItsId) {
  EXPECT_EQ(run({"env", "get", "Local"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("envVars")) << "more is told of one than of each in a list";
  EXPECT_EQ(run({"env", "get", "0190bbbb"}), 0) << err_.str();
  EXPECT_EQ(run({"env", "get", environment}), 0) << err_.str();
  EXPECT_EQ(run({"env", "get", "nowhere"}), 3);
  EXPECT_THAT(err_.str(), HasSubstr("error: no environment is called 'nowhere'"));
  EXPECT_THAT(err_.str(), HasSubstr("  code: environment_not_found"));
  EXPECT_THAT(err_.str(), HasSubstr("  fix: 'berth env list' shows them all"));
}

TEST_F(CliTest, SeveralCompaniesMustBeChosenFrom) {
  answers_["GET /api/companies"] =
      http_answer(200, R"([{"id":")" + std::string{company} + R"(","name":"Acme"},{"id":")" +
                           std::string{other_company} + R"(","name":"Umbrella"}])");
  EXPECT_EQ(run({"env", "list"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("Umbrella"));
  EXPECT_EQ(run({"env", "list", "--company", "Acme"}), 0) << err_.str();
  console_.variables["BERTH_COMPANY"] = "Acme";
  EXPECT_EQ(run({"env", "list"}), 0) << err_.str();
}

TEST_F(CliTest, CreatesAnSshEnvironmentFromFlags) {
  const std::string key = folder_ + "/key";
  ASSERT_TRUE(replace_file(key, "PEM\n", 0600));
  const std::string path = "POST /api/companies/" + std::string{company} + "/environments";
  answers_[path] = http_answer(201, "{}");
  ASSERT_EQ(run({"env", "create", "b", "--driver", "ssh", "--host", "h", "--user", "u", "--path",
                 "/p", "--key-file", key, "--set", "port=2222", "--set",
                 "strictHostKeyChecking=false", "--var", "N=1"}),
            0)
      << err_.str();
  EXPECT_EQ(parse_json(last().body).value(), parse_json(R"({"name":"b","driver":"ssh",
    "config":{"host":"h","username":"u","remoteWorkspacePath":"/p","privateKey":"PEM\n",
    "port":2222,"strictHostKeyChecking":false},"envVars":{"N":"1"}})")
                                                 .value());
}

TEST_F(CliTest, ARepeatedFlagTakesOneValueAndLeavesTheName) {
  const std::string path = "POST /api/companies/" + std::string{company} + "/environments";
  answers_[path] = http_answer(201, "{}");
  ASSERT_EQ(run({"env", "create", "--driver", "local", "--var", "A=1", "--set", "x.y=2", "name"}),
            0)
      << err_.str();
  EXPECT_EQ(parse_json(last().body).value(),
            parse_json(R"({"name":"name","driver":"local","config":{"x":{"y":2}},
                           "envVars":{"A":"1"}})")
                .value());
  EXPECT_EQ(run({"env", "create", "n", "--driver", "local", "--set", "novalue"}), 2);
  EXPECT_EQ(run({"env", "create", "n", "--driver", "local", "--config", "[1]"}), 2);
  EXPECT_EQ(run({"env", "create", "n", "--driver", "boat"}), 2);
}

TEST_F(CliTest, UpdatesTheVersionItReadAndExplainsAConflict) {
  const std::string path = "PATCH /api/environments/" + std::string{environment};
  answers_[path] = http_answer(200, "{}");
  ASSERT_EQ(run({"env", "update", "Local", "--var", "B=2"}), 0) << err_.str();
  EXPECT_EQ(last().header("If-Match"), "\"3\"");
  EXPECT_EQ(last().body, R"({"envVars":{"A":"1","B":"2"}})");
  answers_[path] = http_answer(412, R"({"error":"stale","code":"precondition_failed"})");
  EXPECT_EQ(run({"env", "update", "Local", "--name", "x"}), 4);
  EXPECT_THAT(err_.str(), HasSubstr(" changed since it was read; nothing was overwritten"));
  EXPECT_THAT(err_.str(), HasSubstr("berth env get"));
}

TEST_F(CliTest, ASecretComesFromAPipeOrAFileAndNeverFromTheCommandLine) {
  const std::string path = "POST /api/companies/" + std::string{company} + "/secrets";
  answers_[path] = http_answer(201, "{}");
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const Fd reading{ends[0]};
  {
    const Fd writing{ends[1]};
    ASSERT_EQ(::write(writing.get(), "hunter2\n", 8), 8);
  }
  console_.in = reading.get();
  ASSERT_EQ(run({"secret", "create", "db"}), 0) << err_.str();
  EXPECT_EQ(last().body, R"({"name":"db","value":"hunter2"})");

  ASSERT_TRUE(replace_file(folder_ + "/pem", "two\nlines\n", 0600));
  ASSERT_EQ(run({"secret", "create", "pem", "--value-file", folder_ + "/pem"}), 0) << err_.str();
  EXPECT_EQ(last().body, R"({"name":"pem","value":"two\nlines\n"})");

  EXPECT_EQ(run({"secret", "create", "db", "hunter2"}), 2);
  EXPECT_EQ(run({"secret", "create", "db", "--value", "hunter2"}), 2);
}

TEST_F(CliTest, DestroysNothingWithoutAYes) {
  const std::string path = "DELETE /api/environments/" + std::string{environment};
  answers_[path] = http_answer(200, "{}");
  EXPECT_EQ(run({"env", "delete", "Local"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--yes"));
  EXPECT_THAT(last().line, HasSubstr("GET "));
  EXPECT_EQ(run({"env", "delete", "Local", "--yes"}), 0) << err_.str();
  EXPECT_THAT(last().line, HasSubstr(path));
}

TEST_F(CliTest, ATokenIsShownOnceAndItsRevocationHasTwoNames) {
  const std::string path = "POST /api/companies/" + std::string{company} + "/tokens";
  answers_[path] = http_answer(201, R"({"token":{"id":"x"},"key":"brt_abc"})");
  console_.out_is_terminal = true;
  ASSERT_EQ(run({"token", "create", "laptop", "--role", "viewer"}), 0) << err_.str();
  EXPECT_EQ(out_.str(), "brt_abc\n");
  EXPECT_EQ(last().body, R"({"name":"laptop","role":"viewer","kind":"operator_key"})");
  EXPECT_EQ(run({"token", "create", "laptop", "--role", "king"}), 2);
  answers_["DELETE /api/tokens/" + std::string{environment}] = http_answer(200, "{}");
  EXPECT_EQ(run({"token", "delete", environment, "--yes"}), 0) << err_.str();
  EXPECT_EQ(run({"token", "revoke", environment, "--yes"}), 0) << err_.str();
}

TEST_F(CliTest, AKeyForAnAgentHasNoRole) {
  const std::string agent = "0190cccc-0000-7000-8000-000000000003";
  const std::string home = "/api/companies/" + std::string{company};
  answers_["GET " + home + "/agents"] =
      http_answer(200, R"([{"id":")" + agent + R"(","name":"coder"}])");
  answers_["POST " + home + "/tokens"] =
      http_answer(201, R"({"token":{"id":"x"},"key":"brt_abc"})");
  ASSERT_EQ(run({"token", "create", "bot", "--agent", "coder"}), 0) << err_.str();
  EXPECT_EQ(last().body, R"({"name":"bot","kind":"agent_key","agentId":")" + agent + R"("})");
  EXPECT_EQ(run({"token", "create", "bot", "--agent", "coder", "--role", "operator"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--role"));
}

TEST_F(CliTest, TheExitCodeTellsWhatWentWrong) {
  answers_["GET /api/companies"] = http_answer(401, R"({"error":"who","code":"unauthenticated"})");
  EXPECT_EQ(run({"env", "list"}), 5);
  answers_["GET /api/companies"] = http_answer(500, R"({"error":"oh","code":"bug"})");
  EXPECT_EQ(run({"env", "list"}), 1);
  console_.variables["BERTH_URL"] = "http://127.0.0.1:1";
  EXPECT_EQ(run({"env", "list"}), 6);
  EXPECT_EQ(run({"env", "lisst"}), 2);
  EXPECT_EQ(run({"env"}), 2);
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Exit codes:"));
}

TEST_F(CliTest, ARunIsAskedForExactlyAsItWasTyped) {
  answers_["POST /api/companies/" + std::string{company} + "/runs"] =
      http_answer(202, R"({"id":")" + std::string{environment} + R"(","status":"queued"})");
  ASSERT_EQ(run({"run", "-d", "-e", "Local", "-C", "/srv", "--env", "A=1=2", "--timeout", "1m30s",
                 "--", "list", "[a,b]", "", "--json", "--", "-d"}),
            0)
      << err_.str();
  EXPECT_EQ(parse_json(last().body).value(),
            parse_json(R"({"command":"list","args":["[a,b]","","--json","--","-d"],"cwd":"/srv",
                           "timeoutMs":90000,"env":{"A":"1=2"},"environmentId":")" +
                       std::string{environment} + R"("})")
                .value());
  ASSERT_EQ(run({"--company", "run", "--url", server_.url(), "run", "-d", "--", "env"}), 125);
  ASSERT_EQ(run({"run", "-d", "--", "env"}), 0) << err_.str();
  EXPECT_EQ(last().body, R"({"command":"env","args":[]})");
}

TEST_F(CliTest, ARunThatIsTypedWrongIsAUsageErrorAndOneThatCannotBeStartedIs125) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"run"},
                                             {"run", "--"},
                                             {"run", "--timeout", "soon", "--", "ls"},
                                             {"run", "--var", "NOT_SET", "ls"},
                                             {"run", "-it", "--", "ls"},
                                             {"run", "list", "ls"},
                                             {"run", "list", "--", "ls"}}) {
    EXPECT_EQ(run(wrong), 2) << wrong.back() << err_.str();
    EXPECT_THAT(err_.str(), HasSubstr("fix: ")) << wrong.back();
  }
  EXPECT_EQ(run({"run", "-e", "nowhere", "--", "ls"}), 125);
  EXPECT_THAT(err_.str(), HasSubstr("environment_not_found"));
  EXPECT_EQ(run({"run", "--", "ls"}), 125);
  console_.variables["BERTH_URL"] = "http://127.0.0.1:1";
  EXPECT_EQ(run({"run", "--company", company, "--", "ls"}), 125);
  EXPECT_THAT(err_.str(), HasSubstr("server_unreachable"));
}

TEST_F(CliTest, ATestOfAnEnvironmentShowsItsStepsAndFailsWithIt) {
  const std::string path = "POST /api/environments/" + std::string{environment} + "/probe";
  answers_[path] = http_answer(200, R"({"ok":false,"summary":"no","steps":[{"name":"connect",
    "ok":false,"durationMs":5,"message":"refused","code":"ssh_failed","remedy":"start sshd"}]})");
  console_.out_is_terminal = true;
  EXPECT_EQ(run({"env", "test", "Local", "--no-color"}), 1);
  EXPECT_THAT(out_.str(), HasSubstr("FAIL  connect"));
  EXPECT_THAT(out_.str(), HasSubstr("fix: start sshd"));
  console_.out_is_terminal = false;
  EXPECT_EQ(run({"env", "test", "Local"}), 1);
  EXPECT_FALSE(parse_json(out_.str()).value().at("ok").as_bool());
  answers_[path] = http_answer(200, R"({"ok":true,"summary":"yes","steps":[]})");
  EXPECT_EQ(run({"env", "test", "Local"}), 0);
  EXPECT_EQ(run({"env", "test"}), 2);
}

TEST_F(CliTest, ALeaseIsNotDestroyedWithoutAYes) {
  const std::string lease = "/api/environment-leases/" + std::string{environment};
  answers_["POST " + lease + "/destroy"] = http_answer(200, "{}");
  answers_["POST " + lease + "/force-resolve"] = http_answer(200, "{}");
  EXPECT_EQ(run({"lease", "destroy", environment}), 2);
  EXPECT_EQ(run({"lease", "destroy", environment, "--yes"}), 0) << err_.str();
  EXPECT_EQ(run({"lease", "force-resolve", environment, "--yes"}), 2);
  EXPECT_EQ(run({"lease", "force-resolve", environment, "--yes", "--reason", "gone"}), 0);
  EXPECT_EQ(last().body, R"({"reason":"gone"})");
  answers_["POST " + lease + "/adopt"] = http_answer(200, "{}");
  EXPECT_EQ(run({"lease", "adopt", environment, "--sandbox", "sbx"}), 2);
  EXPECT_EQ(run({"lease", "adopt", environment, "--sandbox", "sbx", "--yes"}), 0) << err_.str();
  EXPECT_EQ(last().body, R"({"providerLeaseId":"sbx"})");
}

TEST_F(CliTest, ErrorsAreJsonForPrograms) {
  console_.variables["BERTH_URL"] = "http://127.0.0.1:1";
  EXPECT_EQ(run({"env", "list", "--json"}), 6);
  const bj::value error = parse_json(err_.str()).value();
  EXPECT_EQ(error.at("code").as_string(), "server_unreachable");
  EXPECT_THAT(std::string{error.at("remedy").as_string()}, HasSubstr("berth serve"));
}

TEST_F(CliTest, TheServerAndTheTokenAreFoundInTheHomeFolder) {
  console_.variables.erase("BERTH_URL");
  ASSERT_TRUE(replace_file(folder_ + "/server.json",
                           R"({"url":")" + server_.url() + R"(","pid":1})", 0600));
  ASSERT_TRUE(replace_file(folder_ + "/admin.token", "brt_admin\n", 0600));
  ASSERT_EQ(run({"env", "list"}), 0) << err_.str();
  EXPECT_EQ(last().header("Authorization"), "Bearer brt_admin");
  console_.variables["BERTH_TOKEN"] = "brt_mine";
  ASSERT_EQ(run({"env", "list"}), 0);
  EXPECT_EQ(last().header("Authorization"), "Bearer brt_mine");
  ASSERT_TRUE(replace_file(folder_ + "/server.json", "{", 0600));
  EXPECT_EQ(run({"env", "list"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("server.json"));
}

TEST_F(CliTest, ServeGetsTheSettingsAndItsExitCodeIsOurs) {
  EXPECT_EQ(run({"serve", "--listen", "127.0.0.1:0", "--log-level", "debug"}), 42) << err_.str();
  EXPECT_EQ(served_->listen, "127.0.0.1:0");
  EXPECT_EQ(served_->home, folder_);
  EXPECT_EQ(served_->log_level, LogLevel::debug);
  EXPECT_EQ(run({"serve", "--listen", "x"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("--listen: listen: 'x' is not a host and port"));
}

TEST_F(CliTest, AWrongFileStopsEveryCommandButTheOnesThatHelp) {
  ASSERT_TRUE(replace_file(folder_ + "/berth.toml", "lisen = 1", 0600));
  EXPECT_EQ(run({"env", "list"}), 1);
  EXPECT_THAT(err_.str(), HasSubstr("berth.toml:1:1"));
  EXPECT_EQ(run({"version"}), 0);
  EXPECT_EQ(run({"doctor", "--json"}), 1);
  EXPECT_THAT(out_.str(), HasSubstr("berth.toml:1:1"));
}

TEST_F(CliTest, ConfigShowSaysWhereEachValueComesFrom) {
  console_.out_is_terminal = true;
  console_.variables["BERTH_MODE"] = "authenticated";
  ASSERT_EQ(run({"config", "show", "--no-color"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), testing::ContainsRegex("mode +authenticated +BERTH_MODE"));
  EXPECT_THAT(out_.str(), testing::ContainsRegex("listen +127.0.0.1:3100 +default"));
}

TEST_F(CliTest, ActivityIsFollowedLineByLine) {
  answers_["GET /api/companies/" + std::string{company} + "/activity/stream"] =
      "HTTP/1.1 200 OK\r\n\r\ndata: {\"action\":\"environment.created\"}\n\n";
  EXPECT_EQ(run({"activity", "list", "-f"}), 0) << err_.str();
  EXPECT_EQ(out_.str(), "{\"action\":\"environment.created\"}\n");
}

TEST_F(CliTest, EveryCommandHasHelpWithAnExample) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"serve"},
                                             {"status"},
                                             {"doctor"},
                                             {"version"},
                                             {"config", "show"},
                                             {"company", "list"},
                                             {"company", "get"},
                                             {"company", "create"},
                                             {"company", "update"},
                                             {"company", "delete"},
                                             {"agent", "list"},
                                             {"agent", "get"},
                                             {"agent", "create"},
                                             {"agent", "update"},
                                             {"agent", "delete"},
                                             {"env", "list"},
                                             {"env", "get"},
                                             {"env", "create"},
                                             {"env", "update"},
                                             {"env", "delete"},
                                             {"env", "blast-radius"},
                                             {"env", "secret-refs"},
                                             {"env", "capabilities"},
                                             {"env", "leases"},
                                             {"env", "test"},
                                             {"agent", "invoke"},
                                             {"run"},
                                             {"run", "list"},
                                             {"run", "get"},
                                             {"run", "logs"},
                                             {"run", "cancel"},
                                             {"run", "retry"},
                                             {"run", "events"},
                                             {"lease", "list"},
                                             {"lease", "get"},
                                             {"lease", "release"},
                                             {"lease", "destroy"},
                                             {"lease", "force-resolve"},
                                             {"lease", "adopt"},
                                             {"template", "adopt"},
                                             {"template", "force-resolve"},
                                             {"cp"},
                                             {"ls"},
                                             {"secret", "list"},
                                             {"secret", "get"},
                                             {"secret", "create"},
                                             {"secret", "update"},
                                             {"secret", "delete"},
                                             {"secret", "rotate"},
                                             {"secret", "usage"},
                                             {"secret", "events"},
                                             {"secret", "versions"},
                                             {"secret", "disable"},
                                             {"secret", "enable"},
                                             {"secret", "rekey"},
                                             {"token", "list"},
                                             {"token", "get"},
                                             {"token", "create"},
                                             {"token", "revoke"},
                                             {"activity", "list"},
                                             {"company", "usage"},
                                             {"company", "quota"},
                                             {"run", "delete"},
                                             {"settings", "get"},
                                             {"settings", "set"},
                                             {"completion", "bash"},
                                             {"completion", "zsh"}}) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    EXPECT_EQ(run(arguments), 0) << command.front();
    EXPECT_THAT(out_.str(), HasSubstr("Example: ")) << command.front() << command.back();
  }
}

// Sourced in a real bash, and called as bash calls it.
std::string completed(const std::string& script, const std::string& words, int at) {
  const std::string asks = "source " + script + "; COMP_WORDS=(" + words +
                           "); COMP_CWORD=" + std::to_string(at) +
                           "; _berth; printf '%s ' \"${COMPREPLY[@]}\"";
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const Fd reading{ends[0]};
  Fd writing{ends[1]};
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(writing.get(), STDOUT_FILENO);
    ::dup2(writing.get(), STDERR_FILENO);
    ::execlp("bash", "bash", "--norc", "-c", asks.c_str(), nullptr);
    ::_exit(127);
  }
  writing = Fd{};
  const std::string text = read_fd(reading.get(), 65536, "bash").value();
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << text;
  return text;
}

TEST_F(CliTest, BashCompletesCommandsFlagsAndChoices) {
  ASSERT_EQ(run({"completion", "bash"}), 0);
  const std::string script = folder_ + "/completion.bash";
  ASSERT_TRUE(replace_file(script, out_.str(), 0600));
  EXPECT_THAT(completed(script, "berth en", 1), testing::Eq("env "));
  EXPECT_THAT(completed(script, "berth env cr", 2), testing::Eq("create "));
  EXPECT_THAT(completed(script, "berth env create --dr", 3), testing::Eq("--driver "));
  EXPECT_THAT(completed(script, "berth env create --driver s", 4), testing::Eq("ssh sandbox "));
  EXPECT_THAT(completed(script, "berth --company env secret ro", 4), testing::Eq("rotate "));
  EXPECT_THAT(completed(script, "berth serve --lis", 2), testing::Eq("--listen "));
  EXPECT_THAT(completed(script, "berth env list --js", 3), testing::Eq("--json "));
  EXPECT_THAT(completed(script, "berth run lo", 2), testing::Eq("logs "));
  EXPECT_THAT(completed(script, "berth run logs --stream std", 4), testing::Eq("stdout stderr "));
}

}  // namespace
}  // namespace berth::cli
