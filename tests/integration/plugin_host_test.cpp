#include "integration/plugin_fixture.hpp"

#include "base/files.hpp"
#include "plugins/supervisor.hpp"

#include <fstream>

// By default AddressSanitizer keeps 256 MB of freed memory: as much as a host that keeps what a
// worker sends.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the runtime looks for this name.
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=8:allocator_release_to_os_interval_ms=0";
}

namespace berth::plugin_test {
namespace {

using namespace std::chrono_literals;

class PluginHostTest : public PluginTest {
 protected:
  // Returns when the host has noticed.
  void crash() {
    ASSERT_TRUE(state_becomes(WorkerState::running));
    const auto before = host_->status(id_)->pid;
    EXPECT_FALSE(call("crash"));
    ASSERT_TRUE(run_until([&] {
      const PluginStatus now = *host_->status(id_);
      return now.state != WorkerState::running || (now.pid && now.pid != before);
    }));
  }
};

// The peak resident memory since the last forget_peak().
std::int64_t peak_kb() {
  std::ifstream status{"/proc/self/status"};
  std::string word;
  while (status >> word) {
    if (word != "VmHWM:") continue;
    std::int64_t kb = 0;
    status >> kb;
    return kb;
  }
  return 0;
}

void forget_peak() {
  std::ofstream{"/proc/self/clear_refs"} << "5";
}

TEST_F(PluginHostTest, AWorkerIsStartedAskedAndStopped) {
  start();
  const auto status = host_->status(id_);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, WorkerState::running);
  EXPECT_TRUE(status->methods.contains("environmentExecute"));
  const Result<bj::object> health = await(host_->health(id_));
  ASSERT_TRUE(health) << health.error().message;
  EXPECT_EQ(health->at("status"), "ok");
  EXPECT_TRUE(services_.has_log("hello"));
  ASSERT_TRUE(await(host_->stop(id_)));
  EXPECT_FALSE(host_->status(id_));
  const std::vector<WorkerState> expected{WorkerState::starting, WorkerState::running,
                                          WorkerState::stopping, WorkerState::stopped};
  EXPECT_EQ(services_.states, expected);
}

TEST_F(PluginHostTest, WhatTheWorkerAsksWhileItStartsIsAnswered) {
  start("ask=boot");
  ASSERT_EQ(services_.asked.size(), 1U);
  EXPECT_EQ(services_.asked[0], "state.get -");
}

TEST_F(PluginHostTest, AWorkerThatDiesWhileItStartsIsAnErrorAndNothingRuns) {
  open_host();
  const Result<> started = await(host_->start(plugin("start=die")));
  ASSERT_FALSE(started);
  EXPECT_TRUE(started.error().message.contains("I do not like it here")) << started.error().message;
  EXPECT_EQ(host_->status(id_)->state, WorkerState::error);
  EXPECT_FALSE(host_->status(id_)->pid);
  EXPECT_EQ(services_.states.back(), WorkerState::error);
  // Enabled again, it gets another chance: the dead worker does not block it.
  const Result<> again = await(host_->start(plugin()));
  EXPECT_TRUE(again) << again.error().message;
  EXPECT_EQ(host_->status(id_)->state, WorkerState::running);
}

TEST_F(PluginHostTest, AWorkerThatRefusesOrHangsAtTheStartIsKilled) {
  open_host();
  const Result<> refused = await(host_->start(plugin("start=refuse")));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::plugin_protocol);
  EXPECT_FALSE(host_->status(id_)->pid);
  ASSERT_TRUE(await(host_->stop(id_)));
  config_.initialize_deadline = 300ms;
  open_host();
  const Result<> hung = await(host_->start(plugin("start=hang")));
  ASSERT_FALSE(hung);
  EXPECT_EQ(hung.error().code, Errc::timed_out);
  EXPECT_FALSE(host_->status(id_)->pid);
}

TEST_F(PluginHostTest, AWorkerThatCrashesIsBackWithItsConfigs) {
  services_.stored = {{company_, bj::object{{"name", "stored"}}}};
  start();
  EXPECT_EQ(await(host_->health(id_))->at("message"), "stored");
  const auto before = host_->status(id_)->pid;
  crash();
  ASSERT_TRUE(state_becomes(WorkerState::running));
  EXPECT_NE(host_->status(id_)->pid, before);
  EXPECT_EQ(host_->status(id_)->crashes, 1);
  EXPECT_FALSE(services_.last_reason.contains("last words")) << services_.last_reason;
  EXPECT_TRUE(services_.last_words.contains("last words")) << services_.last_words;
  ASSERT_TRUE(run_until([&] {
    const Result<bj::object> health = await(host_->health(id_));
    return health && health->at("message") == "stored";
  }));
}

TEST_F(PluginHostTest, AWorkerThatKeepsCrashingEndsInErrorThoughEachStartWasGood) {
  start();
  for (int i = 0; i <= config_.back_off.crashes_max; ++i) crash();
  ASSERT_TRUE(state_becomes(WorkerState::error));
  EXPECT_TRUE(services_.last_reason.contains("times in a row")) << services_.last_reason;
  const CallResult refused = call("health");
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.contains("error")) << refused.error().message;
}

TEST_F(PluginHostTest, AMinuteOfHealthMakesUpForOldCrashes) {
  config_.back_off.healthy_after = 0ms;
  start();
  for (int i = 0; i < 2 * config_.back_off.crashes_max; ++i) crash();
  ASSERT_TRUE(state_becomes(WorkerState::running));
  EXPECT_EQ(host_->status(id_)->crashes, 1);
}

TEST_F(PluginHostTest, AConfigThatChangesReachesTheWorker) {
  start();
  ASSERT_TRUE(await(host_->config_changed(id_, company_, bj::object{{"name", "new"}})));
  EXPECT_EQ(await(host_->health(id_))->at("message"), "new");
}

TEST_F(PluginHostTest, AWorkerMayAskOnlyForTheCompanyOfTheCallItWorksOn) {
  start();
  bj::object params{{"driverKey", "boxes"},
                    {"companyId", company_text},
                    {"environmentId", "e"},
                    {"config", bj::object{}}};
  const CallResult probe = call("environmentProbe", params);
  ASSERT_TRUE(probe) << probe.error().message;
  EXPECT_EQ(probe->at("metadata").at("state").at("answered"), "config.get");
  EXPECT_EQ(services_.asked.back(), std::string{"config.get "} + company_text);
  params.erase("companyId");
  const CallResult outside = call("environmentProbe", params);
  ASSERT_TRUE(outside);
  EXPECT_EQ(outside->at("metadata").at("state").at("code"), rpc_code::scope_denied);
}

TEST_F(PluginHostTest, AStopThatHangsIsEndedByForce) {
  config_.stop_times = {.shutdown = 100ms, .exit = 50ms, .terminate = 10s, .kill = 10s};
  start("stop=hang");
  ASSERT_TRUE(await(host_->stop(id_)));
  EXPECT_EQ(services_.states.back(), WorkerState::stopped);
}

TEST_F(PluginHostTest, APluginInJavascriptWithoutNodeSaysWhatIsMissing) {
  config_.environment["PATH"] = "/nowhere";
  std::ofstream{folder_.file("package/worker.js")} << "// empty";
  open_host();
  InstalledPlugin made = plugin();
  made.manifest.worker_entrypoint = "worker.js";
  const Result<> started = await(host_->start(std::move(made)));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::plugin_unavailable);
  EXPECT_TRUE(started.error().message.contains("no node on PATH"));
}

TEST_F(PluginHostTest, AWorkerOutsideOfItsPackageIsNeverStarted) {
  open_host();
  InstalledPlugin made = plugin();
  made.manifest.worker_entrypoint = "../../../bin/sh";
  const Result<> started = await(host_->start(std::move(made)));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::plugin_unavailable);
}

struct Hostility {
  const char* name;
  const char* what;
  const char* reason;
};

class HostileWorker : public PluginHostTest, public ::testing::WithParamInterface<Hostility> {};

TEST_P(HostileWorker, IsStoppedWithAReasonWhileMemoryStaysFlat) {
  config_.channel.line_in_max = std::size_t{8} << 20;
  config_.back_off.crashes_max = 0;
  start();
  forget_peak();
  const std::int64_t before = peak_kb();
  EXPECT_FALSE(call("hostile", {{"what", GetParam().what}}));
  ASSERT_TRUE(state_becomes(WorkerState::error));
  EXPECT_TRUE(services_.last_reason.contains(GetParam().reason)) << services_.last_reason;
  EXPECT_LT(peak_kb() - before, 64'000);
}

INSTANTIATE_TEST_SUITE_P(Plugin, HostileWorker,
                         ::testing::Values(Hostility{"endless_line", "endless line", "a line of"},
                                           Hostility{"deep", "deep", "nested"},
                                           Hostility{"flood", "flood", "useless"},
                                           Hostility{"many_values", "many values", "in memory"}),
                         [](const auto& test) { return test.param.name; });

TEST_F(PluginHostTest, ALineBelongsToTheCompanyOfItsCallAndToNoneWithoutACall) {
  start();
  for (const char* by : {"log under the call", "log", "stderr"}) {
    const bj::object params{{"companyId", company_text}, {"by", by}, {"text", by}};
    EXPECT_TRUE(call("say", params));
    ASSERT_TRUE(run_until([&] { return services_.has_log(by); }));
  }
  for (const PluginLogLine& line : services_.lines) {
    const bool is_of_call = line.message == "log under the call";
    EXPECT_EQ(line.company_id, is_of_call ? std::optional{company_} : std::nullopt) << line.message;
  }
}

TEST_F(PluginHostTest, WhatAWorkerSaysIsCleanedOfTheSecretsThatItWasGiven) {
  start();
  const std::vector<Secret> given = [] {
    std::vector<Secret> values;
    values.emplace_back("PLANTED-value");
    return values;
  }();
  const auto held = host_->find(id_)->given().hold(given);
  const auto say = [&](const char* by, const char* text) {
    return call("say", {{"companyId", company_text}, {"by", by}, {"text", text}});
  };
  EXPECT_TRUE(say("log under the call", "one PLANTED-value"));
  EXPECT_TRUE(say("log under the call", "key passed-through"));  // of the server's environment
  ASSERT_TRUE(run_until([&] { return services_.has_log("key ***REDACTED***"); }));
  EXPECT_TRUE(say("stderr", "two PLANTED-value"));
  ASSERT_TRUE(run_until([&] {
    return services_.has_log("one ***REDACTED***") && services_.has_log("two ***REDACTED***");
  }));
  const CallResult refused = say("error", "three PLANTED-value");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "three ***REDACTED***");
  // A line that was cut by the worker's end does not show a partial value.
  EXPECT_FALSE(say("last words", "four PLANTED-value\nfive PLANTED-va"));
  ASSERT_TRUE(run_until([&] { return services_.last_words.contains("five"); }));
  EXPECT_TRUE(services_.last_words.ends_with("four ***REDACTED***\nfive \n"))
      << services_.last_words;
  for (const PluginLogLine& line : services_.lines) {
    EXPECT_FALSE(line.message.contains("PLANTED")) << line.message;
    EXPECT_FALSE(encode_text(line.meta).contains("PLANTED")) << encode_text(line.meta);
  }
}

TEST_F(PluginHostTest, LinesThatAreNoMessagesAreLoggedAndPassedOver) {
  start();
  EXPECT_TRUE(call("hostile", {{"what", "garbage"}}));
  EXPECT_TRUE(services_.has_log("console.log says"));
  EXPECT_EQ(host_->status(id_)->state, WorkerState::running);
}

}  // namespace
}  // namespace berth::plugin_test
