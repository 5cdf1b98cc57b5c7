#include "cli/print/words.hpp"

#include "cli/cli_fixture.hpp"
#include "cli/print/printer.hpp"

#include <gmock/gmock.h>

// What users type first, and the messages they get when it is wrong.
namespace berth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string of_company = "/api/companies/" + std::string{company};
const std::string run_one = "0190cccc-0000-7000-8000-00000000aa01";
const std::string run_two = "0190cccc-0000-7000-8000-00000000aa02";

class WordsTest : public CliTest {
 protected:
  WordsTest() {
    reads_json_ = false;
    console_.out_is_terminal = true;
    console_.variables["NO_COLOR"] = "1";
    answers_["GET " + of_company + "/heartbeat-runs"] = http_answer(
        200, R"([{"id":")" + run_one +
                 R"(","status":"succeeded","exitCode":0,"title":"uname -a",)" +
                 R"("environmentId":")" + environment + R"(","leaseId":"x"},{"id":")" + run_two +
                 R"(","status":"failed","exitCode":2,"title":"sh -c 'a b'",)" +
                 R"("environmentId":")" + environment + R"("}])");
    answers_["POST " + of_company + "/runs"] =
        http_answer(202, R"({"id":")" + run_one + R"(","status":"queued"})");
  }
  bj::value sent() const { return parse_json(last().body).value(); }
};

TEST_F(WordsTest, NamesAnUnknownCommandAndProposesTheNearest) {
  struct Case {
    std::vector<std::string> words;
    std::string says, proposes;
  };
  const Case cases[] = {
      {{"evn", "list"}, "'evn' is not a command of 'berth'", "did you mean 'berth env'?"},
      {{"env", "lisst"}, "'lisst' is not a command of 'berth env'", "'berth env list'?"},
      {{"--json", "sandbx"}, "'sandbx' is not a command", "'berth sandbox'?"},
      {{"blast-radius"}, "'blast-radius' is not a command", "'berth env blast-radius'?"},
      {{"stop", "x"}, "'stop' is not a command", "berth run cancel RUN"},
      {{"plugin", "dev"}, "'dev' is not a command of 'berth plugin'", "berth plugin"},
      {{"xyzzy"}, "'xyzzy' is not a command of 'berth'", "see 'berth --help'"},
      {{"env"}, "'berth env' needs a command", "see 'berth env --help'"},
      {{"env", "create", "x", "--dirver", "ssh"}, "'--dirver' is not a flag", "'--driver'?"},
      {{"env", "get", "a", "b"}, "'b' is one word too many for 'berth env get'", "--help"},
      {{"run", "--image", "x", "ls"}, "'--image' is not a flag of 'berth run'", "env create"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(run(c.words), 2) << c.words.front();
    EXPECT_THAT(err_.str(), HasSubstr(c.says));
    EXPECT_THAT(err_.str(), HasSubstr(c.proposes));
    EXPECT_THAT(err_.str(), Not(HasSubstr("A subcommand is required")));
  }
}

TEST_F(WordsTest, HelpAndVersionHaveTheirUsualNames) {
  ASSERT_EQ(run({"help"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Run work:"));
  EXPECT_LT(out_.str().find("\n  exec "), out_.str().find("\n  cp "));
  EXPECT_LT(out_.str().find("\n  cp "), out_.str().find("\n  env "));
  ASSERT_EQ(run({"help", "env", "create"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("--known-hosts-file"));
  ASSERT_EQ(run({"help", "image"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("Example: berth image import"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("Exit codes")));
  EXPECT_EQ(run({"help", "evn"}), 2);
  ASSERT_EQ(run({"-v"}), 0);
  EXPECT_THAT(out_.str(), testing::StartsWith("berth "));
}

TEST_F(WordsTest, AGroupShowsItsExampleAndNotTheFlagsOfAll) {
  for (const char* group : {"env", "agent", "sandbox", "lease", "image", "template", "plugin",
                            "secret", "token", "company", "activity", "settings", "config"}) {
    ASSERT_EQ(run({group, "--help"}), 0) << group;
    EXPECT_THAT(out_.str(), HasSubstr(std::string{"Example: berth "} + group)) << group;
    EXPECT_THAT(out_.str(), Not(HasSubstr("Exit codes"))) << group;
  }
}

TEST_F(WordsTest, TakesTheWordsOfOtherPrograms) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"ps"}, {"runs"}, {"run", "list"}, {"ps", "--no-color"}}) {
    ASSERT_EQ(run(words), 0) << words.front() << err_.str();
    EXPECT_THAT(out_.str(), HasSubstr("uname -a")) << words.front();
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"env", "ls"}, {"envs"}, {"environments"}}) {
    ASSERT_EQ(run(words), 0) << words.front() << err_.str();
    EXPECT_THAT(out_.str(), HasSubstr("Local")) << words.front();
  }
  answers_["DELETE /api/environments/" + std::string{environment}] = http_answer(200, "{}");
  EXPECT_EQ(run({"env", "rm", "Local", "--yes"}), 0) << err_.str();
  EXPECT_EQ(run({"env", "show", "Local"}), 0) << err_.str();
}

TEST_F(WordsTest, TheFirstWordThatIsNotAFlagBeginsTheCommandOfARun) {
  ASSERT_EQ(run({"run", "-d", "uname", "-a"}), 0) << err_.str();
  EXPECT_EQ(sent(), parse_json(R"({"command":"uname","args":["-a"]})").value());
  ASSERT_EQ(run({"run", "-de", "Local", "-w", "/srv", "ls", "-e", "x", "--", "--json"}), 0)
      << err_.str();
  EXPECT_EQ(sent(), parse_json(R"({"command":"ls","args":["-e","x","--","--json"],"cwd":"/srv",
                                   "environmentId":")" +
                               std::string{environment} + R"("})")
                        .value());
  ASSERT_EQ(run({"run", "--environment=Local", "--detach", "--rm", "list"}), 0) << err_.str();
  EXPECT_EQ(sent().at("command").as_string(), "list") << "behind a flag of its own";
  ASSERT_EQ(run({"run", "-d", "--", "list"}), 0) << err_.str();
  EXPECT_EQ(sent().at("command").as_string(), "list");
}

TEST_F(WordsTest, ADetachedRunPrintsItsIdAndItsObjectOnRequest) {
  ASSERT_EQ(run({"run", "-d", "true"}), 0) << err_.str();
  EXPECT_EQ(out_.str(), run_one + "\n");
  ASSERT_EQ(run({"run", "-d", "-o", "json", "true"}), 0) << err_.str();
  EXPECT_EQ(parse_json(out_.str()).value().at("status").as_string(), "queued");
}

TEST_F(WordsTest, AVariableBehindTheFlagOfThePlaceIsExplained) {
  EXPECT_EQ(run({"run", "-e", "FOO=bar", "env"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("-e names the environment to run in"));
  EXPECT_THAT(err_.str(), HasSubstr("give a variable with --var FOO=bar"));
}

TEST_F(WordsTest, AVariableMayBeASecretWhoseIdIsStored) {
  const std::string secret = "0190ffff-0000-7000-8000-000000000007";
  answers_["GET " + of_company + "/secrets"] =
      http_answer(200, R"([{"id":")" + secret + R"(","name":"deploy key","key":"deploy-key"}])");
  answers_["POST " + of_company + "/environments"] = http_answer(201, "{}");
  const bj::value reference = bj::object{{"type", "secret_ref"}, {"secretId", bj::string(secret)}};
  ASSERT_EQ(run({"run", "-d", "--var", "T=secret:deploy-key", "env"}), 0) << err_.str();
  EXPECT_EQ(sent().at("env").at("T"), reference);
  ASSERT_EQ(run({"run", "-d", "--env-secret", "T=deploy-key", "env"}), 0) << err_.str();
  EXPECT_EQ(sent().at("env").at("T"), reference);
  ASSERT_EQ(run({"env", "create", "x", "--driver", "local", "--var", "T=secret:deploy key"}), 0)
      << err_.str();
  EXPECT_EQ(sent().at("envVars").at("T"), reference);
  EXPECT_EQ(run({"run", "-d", "--var", "T=secret:nothing", "env"}), 125);
  EXPECT_THAT(err_.str(), HasSubstr("no secret is called 'nothing'"));
}

TEST_F(WordsTest, ASandboxIsOneOfThisMachineUnlessAnotherProviderIsNamed) {
  answers_["POST " + of_company + "/environments"] = http_answer(201, "{}");
  ASSERT_EQ(run({"env", "create", "x", "--driver", "sandbox"}), 0) << err_.str();
  EXPECT_EQ(sent().at("config").at("provider").as_string(), "linux");
  ASSERT_EQ(run({"env", "create", "x", "--driver", "sandbox", "--provider", "e2b"}), 0);
  EXPECT_EQ(sent().at("config").at("provider").as_string(), "e2b");
  ASSERT_EQ(run({"env", "create", "x", "--driver", "local"}), 0);
  EXPECT_FALSE(sent().as_object().contains("config"));
}

TEST_F(WordsTest, APipeDoesNotChangeTheFormat) {
  console_.out_is_terminal = false;
  ASSERT_EQ(run({"run", "list"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("0000aa01  succeeded  uname -a     Local"));
  EXPECT_THAT(out_.str(), HasSubstr("0000aa02  failed     sh -c 'a b'  Local"));
  ASSERT_EQ(run({"run", "list", "-o", "wide"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr(run_one + "  succeeded"));
  ASSERT_EQ(run({"run", "list", "-o", "name"}), 0) << err_.str();
  EXPECT_EQ(out_.str(), run_one + "\n" + run_two + "\n");
  ASSERT_EQ(run({"env", "list", "-o", "name"}), 0) << err_.str();
  EXPECT_EQ(out_.str(), "Local\n");
  ASSERT_EQ(run({"run", "list", "-o", "json"}), 0) << err_.str();
  EXPECT_FALSE(parse_json(out_.str()).value().at(0).as_object().contains("environmentName"));
  console_.variables["BERTH_OUTPUT"] = "json";
  ASSERT_EQ(run({"run", "list"}), 0);
  EXPECT_TRUE(parse_json(out_.str()));
  ASSERT_EQ(run({"run", "list", "-o", "table"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("COMMAND")) << "a flag wins over the variable";
  console_.variables["BERTH_OUTPUT"] = "xml";
  EXPECT_EQ(run({"run", "list"}), 2);
  EXPECT_EQ(run({"run", "list", "-o", "yaml"}), 2);
}

TEST_F(WordsTest, EveryListFitsEightyColumns) {
  const std::string id = environment;
  const std::string text(60, 'w');
  const std::string row =
      R"([{"id":")" + id + R"(","name":")" + text + R"(","status":"succeeded",)" +
      R"("description":")" + text + R"(","key":")" + text + R"(","nextStep":")" + text +
      R"(","environmentId":")" + id + R"(","heartbeatRunId":")" + id +
      R"(","driver":"sandbox","adapterType":"claude_local","role":"operator",)" +
      R"("lastUsedAt":"2020-01-01T00:00:00.000Z","hint":"brt_abcdefgh",)" +
      R"("createdAt":"2020-01-01T00:00:00.000Z","title":")" + text + R"(",)" +
      R"("acquiredAt":"2020-01-01T00:00:00.000Z","kind":"operator_key",)" +
      R"("expiresAt":"2020-01-01T00:00:00.000Z","action":"heartbeat.invoked",)" +
      R"("actorId":"local-board","entityType":"heartbeat_run","entityId":")" + id + R"("}])";
  for (const char* path : {"agents", "environments", "secrets", "tokens", "heartbeat-runs",
                           "environment-leases", "sandboxes", "templates", "activity"}) {
    answers_["GET " + of_company + "/" + path] = http_answer(200, row);
  }
  console_.columns = 80;
  for (const char* group :
       {"agent", "env", "secret", "token", "run", "lease", "sandbox", "template", "activity"}) {
    ASSERT_EQ(run({group, "list"}), 0) << group << err_.str();
    std::istringstream lines{out_.str()};
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), 80U) << group << "\n" << out_.str();
    }
    EXPECT_THAT(out_.str(), Not(HasSubstr(id))) << group;
  }
}

TEST_F(WordsTest, ColoursMeanWhatHappened) {
  console_.variables.erase("NO_COLOR");
  ASSERT_EQ(run({"run", "list"}), 0);
  EXPECT_THAT(out_.str(), HasSubstr("\x1b[32msucceeded\x1b[0m"));
  EXPECT_THAT(out_.str(), HasSubstr("\x1b[31mfailed\x1b[0m"));
  EXPECT_EQ(paint_of_state("cancelled"), Paint::yellow);
  EXPECT_EQ(paint_of_state("running"), Paint::blue);
  EXPECT_EQ(paint_of_state("something new"), Paint::none);
}

TEST_F(WordsTest, ARunIsFoundByEitherEndOfItsIdAndTheNewestByLast) {
  for (const std::string& id : {run_one, run_two}) {
    answers_["GET /api/heartbeat-runs/" + id] =
        http_answer(200, R"({"id":")" + id + R"(","status":"succeeded"})");
  }
  ASSERT_EQ(run({"run", "get", "0000aa02"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("run " + run_two));
  ASSERT_EQ(run({"run", "get", "last"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("run " + run_one));
  EXPECT_EQ(run({"run", "get", "0190cccc"}), 4);
  EXPECT_THAT(err_.str(), HasSubstr(run_one + "  succeeded  uname -a"));
  EXPECT_THAT(err_.str(), HasSubstr(run_two + "  failed  sh -c 'a b'"));
  answers_["GET " + of_company + "/heartbeat-runs"] = http_answer(200, "[]");
  EXPECT_EQ(run({"run", "get", "last"}), 3);
  EXPECT_THAT(err_.str(), HasSubstr("there is no run yet"));
}

TEST_F(WordsTest, WatchShowsAgainUntilItFailsAndRefusesToRepeatADeed) {
  int asked = 0;
  const LoopbackServer two_answers{[&](const SeenRequest& request) {
    if (request.line.contains("/api/companies ") || request.line.contains("companies?")) {
      return answer(request);
    }
    if (++asked <= 2) return answer(request);
    return http_answer(500, R"({"error":"enough","code":"bug"})");
  }};
  console_.variables["BERTH_URL"] = two_answers.url();
  EXPECT_EQ(run({"env", "list", "--watch", "--interval", "0.1"}), 1);
  EXPECT_EQ(asked, 3) << err_.str();
  EXPECT_NE(out_.str().find("Local"), out_.str().rfind("Local")) << "shown twice";
  EXPECT_EQ(run({"env", "delete", "Local", "--watch"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("--watch"));
}

TEST_F(WordsTest, APlaceIsNamedByARunALeaseOrASandbox) {
  const std::string lease = "0190dddd-0000-7000-8000-00000000bb04";
  const std::string sandbox = "0190eeee-0000-7000-8000-00000000cc05";
  const std::string held = R"({"id":")" + lease + R"(","status":"active"})";
  answers_["GET " + of_company + "/environment-leases"] = http_answer(200, "[" + held + "]");
  answers_["GET /api/environment-leases/" + lease] = http_answer(200, held);
  answers_["GET " + of_company + "/heartbeat-runs"] =
      http_answer(200, R"([{"id":")" + run_one + R"(","status":"running","leaseId":")" + lease +
                           R"("},)" + R"({"id":")" + run_two + R"(","status":"queued"}])");
  answers_["GET /api/heartbeat-runs/" + run_one] = http_answer(
      200, R"({"id":")" + run_one + R"(","status":"running","leaseId":")" + lease + R"("})");
  answers_["GET " + of_company + "/sandboxes"] = http_answer(
      200, R"([{"id":")" + sandbox + R"(","status":"active","leaseId":")" + lease + R"("}])");
  answers_["GET " + of_company + "/agents"] = http_answer(200, "[]");
  answers_["POST /api/environment-leases/" + lease + "/exec"] =
      http_answer(200, R"({"outcome":"exited","exitCode":0})");
  for (const std::string& named : {lease, std::string{"0000bb04"}, run_one, std::string{"0000aa01"},
                                   std::string{"last"}, std::string{"0000cc05"}}) {
    ASSERT_EQ(run({"exec", "--json", named, "ls", "-la"}), 0) << named << err_.str();
    EXPECT_THAT(last().body, HasSubstr(R"(["ls","-la"])")) << named;
  }
  EXPECT_EQ(run({"exec", "0000aa02", "ls"}), 4);
  EXPECT_THAT(err_.str(), HasSubstr("run " + run_two + " is queued and has no place"));
  EXPECT_EQ(run({"exec", "Local", "ls"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("'Local' is an environment"));
  EXPECT_EQ(run({"exec", "nothing", "ls"}), 3);
  EXPECT_THAT(err_.str(), HasSubstr("no run, lease or sandbox is called 'nothing'"));
  answers_["GET " + of_company + "/sandboxes"] =
      http_answer(200, R"([{"id":")" + sandbox + R"(","status":"idle","leaseId":null}])");
  EXPECT_EQ(run({"sandbox", "port", "0000cc05", "80"}), 4);
  EXPECT_THAT(err_.str(), HasSubstr("sandbox " + sandbox + " is kept for the next run"));
  answers_["POST /api/sandboxes/" + sandbox + "/lease"] = http_answer(201, held);
  answers_["POST /api/environment-leases/" + lease + "/release"] = http_answer(200, held);
  ASSERT_EQ(run({"exec", "--json", "0000cc05", "ls"}), 0) << err_.str();
  EXPECT_THAT(last().line, HasSubstr("/release")) << "it is given back";
  answers_.erase("POST /api/environment-leases/" + lease + "/exec");
  EXPECT_NE(run({"exec", "--json", "0000cc05", "ls"}), 0);
  EXPECT_THAT(last().line, HasSubstr("/release")) << "also when the command failed";
}

TEST_F(WordsTest, ARunIsFoundByItsNameAndAScriptGetsItsId) {
  const std::string named = R"([{"id":")" + run_two +
                            R"(","name":"nightly","invocationSource":"on_demand",)"
                            R"("status":"running","title":"make test"}])";
  answers_["GET " + of_company + "/heartbeat-runs?name=nightly"] = http_answer(200, named);
  answers_["GET /api/heartbeat-runs/" + run_two] =
      http_answer(200, R"({"id":")" + run_two + R"(","status":"running"})");
  ASSERT_EQ(run({"run", "get", "nightly"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("run " + run_two));
  EXPECT_EQ(run({"run", "get", "weekly"}), 3);
  EXPECT_EQ(run({"ps"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), Not(HasSubstr("NAME"))) << "no run has one";
  answers_["GET " + of_company + "/heartbeat-runs"] = http_answer(200, named);
  EXPECT_EQ(run({"ps"}), 0) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("nightly"));
  EXPECT_EQ(run({"ps", "-o", "name"}), 0) << err_.str();
  EXPECT_EQ(out_.str(), run_two + "\n");
}

TEST_F(WordsTest, APortOfWhatIsNotHeldIsNotListenedFor) {
  const std::string lease = "0190dddd-0000-7000-8000-00000000bb04";
  EXPECT_EQ(run({"sandbox", "port", lease, "80"}), 3);
  EXPECT_THAT(err_.str(), HasSubstr("no run, lease or sandbox has the id '" + lease + "'"));
  answers_["GET /api/environment-leases/" + lease] =
      http_answer(200, R"({"id":")" + lease + R"(","status":"released"})");
  EXPECT_EQ(run({"sandbox", "port", lease, "80"}), 4);
  EXPECT_THAT(err_.str(), HasSubstr("holds no place: it is released"));
  EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace berth::cli
