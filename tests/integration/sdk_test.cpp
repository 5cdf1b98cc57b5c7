#include "plugin_kit/worker_process.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <memory>

// A worker on the SDK behind raw pipes.
namespace berth::sdk_test {
namespace {

using namespace std::chrono_literals;
using plugin_kit::WorkerProcess;

constexpr auto limit = 20s;

std::string text_of(const bj::value& value) {
  return bj::serialize(value);
}

bj::object params(std::string_view command, bj::object config = {{"apiKey", "hush"}}) {
  return {{"driverKey", "sdk-test"}, {"companyId", "c"},
          {"environmentId", "e"},    {"config", std::move(config)},
          {"command", command},      {"lease", bj::object{{"providerLeaseId", nullptr}}}};
}

class Sdk : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    auto spawned = WorkerProcess::spawn({.argv = {BERTH_SDK_WORKER}});
    ASSERT_TRUE(spawned) << spawned.error().message;
    worker_ = std::make_unique<WorkerProcess>(*std::move(spawned));
    worker_->answer_with([](const bj::object&) { return bj::object{{"result", nullptr}}; });
  }

  WorkerProcess& worker() { return *worker_; }
  Result<bj::value> ask(std::string_view method, bj::value with) {
    return worker().ask(method, std::move(with), limit, "inv-1");
  }
  // The whole error response.
  bj::object refused(std::string_view method, bj::value with) {
    const std::int64_t id = worker().call(method, std::move(with));
    const auto answer = worker().answer_to(id, limit);
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
    return answer && answer->contains("error") ? answer->at("error").as_object() : bj::object{};
  }
  bj::object validate(bj::object config) {
    const auto answer = ask("environmentValidateConfig", bj::object{{"config", std::move(config)}});
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
    return answer ? answer->as_object() : bj::object{};
  }

 private:
  std::unique_ptr<WorkerProcess> worker_;
};

TEST_F(Sdk, InitializeListsTheHooksThatThereAreAndMayAskTheHostBefore) {
  const auto answer = ask("initialize", bj::object{});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(text_of(*answer),
            R"({"ok":true,"supportedMethods":["environmentValidateConfig","environmentExecute",)"
            R"("loginPtyOpen","loginPtyInput","loginPtyClose","duplexChannelOpen"]})");
  ASSERT_EQ(worker().requests.size(), 1U);
  EXPECT_EQ(worker().requests[0].at("method").as_string(), "state.get");
  EXPECT_EQ(worker().notifications.at(0).at("method").as_string(), "log");
  EXPECT_EQ(refused("initialize", bj::object{})["code"], -32002);
}

TEST_F(Sdk, AKnownMethodWithoutAHookIsNotImplementedAndAnyOtherUnknown) {
  EXPECT_EQ(refused("environmentSyncIn", bj::object{})["code"], -32004);
  EXPECT_EQ(refused("environmentProbe", params(""))["code"], -32004);
  EXPECT_EQ(refused("nonsense", bj::object{})["code"], -32601);
  EXPECT_TRUE(ask("health", bj::object{}));
  EXPECT_TRUE(ask("configChanged", bj::object{}));
}

TEST_F(Sdk, WhatIsNoMessageIsRefusedOrIgnoredAndTheNextOneIsAnswered) {
  for (const char* line : {"{not json}\n", "[1,2]\n", "7\n",
                           R"({"id":1,"method":"health"})"
                           "\n",
                           "\n", "  \r\n",
                           R"({"jsonrpc":"2.0","id":null,"method":"health"})"
                           "\n",
                           R"({"jsonrpc":"2.0","method":"someEvent","params":{}})"
                           "\n",
                           R"({"jsonrpc":"2.0","id":99,"result":{}})"
                           "\n"}) {
    worker().send_bytes(line);
  }
  worker().send_bytes(R"({"jsonrpc":"2.0","id":"te)");
  worker().send_bytes("xt\",\"method\":\"health\"}\r\n");
  ASSERT_TRUE(worker().answer_to("text", limit));
  ASSERT_EQ(worker().stray_answers.size(), 4U);
  for (const bj::object& stray : worker().stray_answers) {
    EXPECT_EQ(stray.at("error").at("code"), -32700);
  }
}

TEST_F(Sdk, ALineBeyondTheLimitIsPassedOver) {
  const std::string megabyte(1 << 20, 'x');
  for (int i = 0; i < 130; ++i) {
    worker().send_bytes(megabyte);
    worker().read_until([] { return false; }, 1ms);
  }
  worker().send_bytes("\n");
  const auto answer = worker().ask("health", bj::object{}, 60s);
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(worker().stray_answers.size(), 1U);
}

TEST_F(Sdk, DefaultsComeFromTheMembersAndSecretsStayAsTheyWereGiven) {
  EXPECT_EQ(text_of(validate({{"apiKey", "uuid"}, {"proxy", bj::object{{"password", "p"}}}})),
            R"({"ok":true,"normalizedConfig":{"apiKey":"uuid","region":"here","size":"small",)"
            R"("timeoutMs":1000,"tags":[],"proxy":{"url":"none","password":"p"}}})");
}

TEST_F(Sdk, EveryWrongFieldOfAConfigIsNamed) {
  const bj::object answer = validate({{"timeoutMs", 9000}, {"size", "huge"}, {"tags", {1}}});
  EXPECT_EQ(answer.at("ok"), false);
  EXPECT_EQ(text_of(answer.at("errors")),
            R"(["/apiKey is required","/timeoutMs must be at most 5000",)"
            R"("/size is 'huge', expected one of small, large","/tags/0 is not a string"])");
}

TEST_F(Sdk, TheProvidersOwnVerdictIsAdded) {
  EXPECT_EQ(text_of(validate({{"apiKey", "k"}, {"region", "moon"}}).at("errors")),
            R"(["there is nothing on the moon"])");
  EXPECT_EQ(text_of(validate({{"apiKey", "k"}, {"region", "mars"}}).at("warnings")),
            R"(["far away"])");
}

TEST_F(Sdk, AConfigOrARequestThatDoesNotFitNeverReachesTheHook) {
  EXPECT_EQ(refused("environmentExecute", params("reveal", {}))["code"], -32602);
  EXPECT_EQ(refused("environmentExecute", nullptr)["code"], -32602);
  bj::object wrong = params("x");
  wrong["args"] = "no list";
  EXPECT_EQ(refused("environmentExecute", wrong)["message"], "/args is not an array");
}

TEST_F(Sdk, AnErrorAndAnExceptionOfAHookAreAnswers) {
  const bj::object failed = refused("environmentExecute", params("fail"));
  EXPECT_EQ(failed.at("code"), -32002);
  EXPECT_EQ(failed.at("message"), "it did not work");
  EXPECT_EQ(failed.at("data").at("remedy"), "try harder");
  EXPECT_EQ(refused("environmentExecute", params("throw"))["message"], "thrown");
}

TEST_F(Sdk, WhatALibraryPrintsDoesNotReachTheHost) {
  ASSERT_TRUE(ask("environmentExecute", params("print")));
  ASSERT_TRUE(ask("shutdown", bj::object{}));
  EXPECT_EQ(worker().garbage.size(), 0U);
}

TEST_F(Sdk, AHookThatWaitsHoldsUpNobody) {
  std::vector<std::int64_t> held;
  held.reserve(100);
  for (int i = 0; i < 100; ++i) {
    held.push_back(worker().call("environmentExecute", params("hold")));
  }
  ASSERT_TRUE(ask("health", bj::object{}));
  // Not all may have begun: one that begins after the others were released is released later.
  std::size_t answered = 0;
  while (answered < held.size()) {
    ASSERT_TRUE(ask("environmentExecute", params("let-go")));
    while (answered < held.size() && worker().answer_to(held[answered], 100ms)) ++answered;
  }
}

TEST_F(Sdk, AThousandCallsInFlightAreAllAnswered) {
  std::vector<std::int64_t> ids;
  ids.reserve(1000);
  for (int i = 0; i < 1000; ++i) {
    ids.push_back(worker().call("environmentExecute", params("reveal")));
  }
  for (const std::int64_t id : ids) {
    const auto answer = worker().answer_to(id, 60s);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->at("result").at("stdout"), "hush");
  }
}

TEST_F(Sdk, CallsBeyondItsThreadsWaitAndCallsBeyondThoseAreRefusedWhileHealthIsAnswered) {
  constexpr std::size_t threads = 257;  // with the first one
  constexpr std::size_t waiting = 4096;
  constexpr std::size_t beyond = 20;
  const std::string gate = testing::TempDir() + "berth-sdk-gate-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  bj::object held = params("hold-until-opened");
  held["args"] = bj::array{bj::string(gate)};
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < threads + waiting + beyond; ++i) {
    ids.push_back(worker().call("environmentExecute", held));
  }
  EXPECT_TRUE(worker().ask("health", bj::object{}, 60s, "inv-1"));
  const Fd opened{::open(gate.c_str(), O_RDWR | O_CLOEXEC)};
  std::size_t refused = 0;
  for (const std::int64_t id : ids) {
    const auto answer = worker().answer_to(id, 60s);
    ASSERT_TRUE(answer) << answer.error().message;
    if (!answer->contains("error")) continue;
    ++refused;
    EXPECT_TRUE(text_of(answer->at("error")).contains("too many calls under way; try again later"));
  }
  EXPECT_GE(refused, beyond);
  EXPECT_TRUE(ask("environmentExecute", params("reveal"))) << "it goes on afterwards";
  std::remove(gate.c_str());
}

TEST_F(Sdk, CutCharactersAreMendedAndLineSeparatorsEscaped) {
  const auto answer = ask("environmentExecute", params("cut"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->at("stdout"), "\xE2\x82\xAC?\xE2\x80\xA8?");
  std::string live;
  for (const bj::object& heard : worker().notifications) {
    if (heard.at("method") != "execute.log") continue;
    EXPECT_EQ(heard.at("paperclipInvocationId"), "inv-1");
    live += heard.at("params").at("chunk").as_string();
  }
  EXPECT_EQ(live, "\xE2\x82\xAC?\xE2\x80\xA8?");
}

TEST_F(Sdk, QuestionsToTheHostCarryTheInvocationAndBringItsAnswers) {
  worker().answer_with([](const bj::object& request) -> std::optional<bj::object> {
    const std::string method{request.at("method").as_string()};
    if (method == "config.get") return bj::object{{"result", bj::object{{"a", 1}}}};
    if (method == "secrets.resolve") return bj::object{{"result", "opened"}};
    if (method == "http.fetch") {
      return bj::object{{"result", {{"status", 204}, {"headers", bj::object{}}, {"body", ""}}}};
    }
    return bj::object{{"result", nullptr}};
  });
  const auto answer = ask("environmentExecute", params("ask"));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->at("stdout"), R"({"a":1}opened)");
  EXPECT_EQ(answer->at("exitCode"), 204);
  ASSERT_EQ(worker().requests.size(), 4U);
  EXPECT_EQ(text_of(worker().requests[1].at("params")),
            R"({"scopeKind":"company","scopeId":"c","stateKey":"k","value":7})");
  for (const bj::object& request : worker().requests) {
    EXPECT_EQ(request.at("paperclipInvocationId"), "inv-1");
  }
}

TEST_F(Sdk, WhatIsOpenIsHeardOfAfterItsHookHasReturned) {
  const auto said = [&](std::string_view method) {
    std::vector<bj::object> all;
    for (const bj::object& one : worker().notifications) {
      if (one.at("method").as_string() == method) all.push_back(one.at("params").as_object());
    }
    return all;
  };
  bj::object open{
      {"hostRouteId", "r1"},         {"driverKey", "sdk-test"},    {"companyId", "c"},
      {"environmentId", "e"},        {"providerLeaseId", "p"},     {"loginCommandKey", "codex"},
      {"sessionHome", "/tmp/login"}, {"command", bj::array{"cat"}}};
  const auto opened = ask("loginPtyOpen", open);
  ASSERT_TRUE(opened) << opened.error().message;
  const bj::string session = opened->at("workerSessionId").as_string();
  ASSERT_TRUE(ask("loginPtyInput", bj::object{{"workerSessionId", session}, {"data", "bye"}}));
  const auto closed = ask("loginPtyClose", bj::object{{"hostRouteId", "r1"}});
  ASSERT_TRUE(closed) << closed.error().message;
  EXPECT_EQ(text_of(*closed), R"({"hostRouteId":"r1"})");
  std::string text;
  for (const bj::object& one : said("loginPty.output")) {
    EXPECT_EQ(one.at("hostRouteId").as_string(), "r1");
    EXPECT_EQ(one.at("workerSessionId").as_string(), session);
    text += one.at("chunk").as_string();
  }
  EXPECT_EQ(text, "log in to codex\xC3\xA9\nbye");
  ASSERT_EQ(said("loginPty.exit").size(), 1U);
  EXPECT_EQ(said("loginPty.exit")[0].at("exitCode"), 0);

  open["hostRouteId"] = "r2";
  ASSERT_TRUE(ask("duplexChannelOpen", open));
  ASSERT_EQ(said("duplexChannel.data").size(), 1U);
  EXPECT_EQ(said("duplexChannel.data")[0].at("chunk").as_string(), "AP8=");
  EXPECT_EQ(said("duplexChannel.exit").at(0).at("exitCode"), 3);
}

TEST_F(Sdk, WhatTheHostRefusesIsTheErrorOfTheHook) {
  worker().answer_with([](const bj::object&) {
    return bj::object{{"error", {{"code", -32001}, {"message", "not allowed"}}}};
  });
  const bj::object error = refused("environmentExecute", params("ask"));
  EXPECT_EQ(error.at("message"), "config.get: not allowed");
}

TEST_F(Sdk, ShutdownIsAnsweredAndThenTheProcessEnds) {
  worker().call("environmentExecute", params("hold"));
  ASSERT_TRUE(ask("shutdown", bj::object{}));
  const auto status = worker().wait_exit(limit);
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0);
}

TEST_F(Sdk, TheEndOfTheInputEndsTheProcess) {
  worker().call("environmentExecute", params("hold"));
  worker().close_stdin();
  const auto status = worker().wait_exit(limit);
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0);
}

TEST(SdkManifest, SaysWhatTheCodeSays) {
  const std::unique_ptr<FILE, int (*)(FILE*)> out{::popen(BERTH_SDK_WORKER " --manifest", "r"),
                                                  ::pclose};
  ASSERT_TRUE(out);
  std::string text(1 << 16, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out.get()));
  const auto manifest = parse_json(text);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(text_of(manifest->at("capabilities")),
            R"(["environment.drivers.register","plugin.state.read"])");
  EXPECT_EQ(manifest->at("entrypoints").at("worker"), "./sdk-worker");
  const bj::value& driver = manifest->at("environmentDrivers").at(0);
  EXPECT_EQ(driver.at("supportsLoginPty"), true);
  EXPECT_EQ(driver.at("sandboxCapabilities").at("duplexCommandStream"), true);
  const bj::value& schema = driver.at("configSchema");
  EXPECT_EQ(text_of(schema.at("required")), R"(["apiKey"])");
  EXPECT_EQ(text_of(schema.at("properties").at("apiKey")),
            R"({"type":"string","format":"secret-ref","title":"API key","minLength":1})");
  EXPECT_EQ(text_of(schema.at("properties").at("timeoutMs")),
            R"x({"type":"integer","title":"Limit (ms)","minimum":1,"maximum":5000,)x"
            R"x("default":1000})x");
  EXPECT_EQ(text_of(schema.at("properties").at("size")),
            R"({"type":"string","enum":["small","large"],"default":"small"})");
  EXPECT_EQ(text_of(schema.at("properties").at("proxy").at("properties").at("password")),
            R"({"type":"string","format":"secret-ref"})");
}

}  // namespace
}  // namespace berth::sdk_test
