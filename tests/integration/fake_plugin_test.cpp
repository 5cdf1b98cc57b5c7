#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"
#include "plugin_kit/worker_process.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <memory>

// `fake-plugin` as it is installed, behind raw pipes.
namespace berth::fake_plugin_test {
namespace {

using namespace std::chrono_literals;
using plugin_kit::WorkerProcess;

constexpr auto fake_limit = 30s;

bool exists(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
}

bj::object joined(bj::object base, const bj::object& more) {
  for (const auto& [key, value] : more) base[key] = value;
  return base;
}

bj::object shell(std::string_view script) {
  return {{"command", "sh"}, {"args", bj::array{"-c", script}}};
}

class FakePlugin : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    // Processes that a killed worker leaves become children of the test, where they are seen.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    start();
  }
  void TearDown() override {
    if (!started_) return;
    for (const std::string& id : leases_) {
      const auto gone = ask("environmentDestroyLease", bj::object{{"providerLeaseId", id}});
      EXPECT_TRUE(gone) << (gone ? "" : gone.error().message);
    }
    EXPECT_TRUE(ask("shutdown", {}));
    EXPECT_TRUE(worker_->wait_exit(fake_limit));
    const auto until = std::chrono::steady_clock::now() + fake_limit;
    while (!keeper::descendants_of(::getpid()).empty()) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "processes are left";
      ::poll(nullptr, 0, 5);
    }
    for (const std::string& folder : folders_) EXPECT_FALSE(exists(folder)) << folder;
  }

  void start() {
    auto spawned = WorkerProcess::spawn(
        {.argv = {BERTH_FAKE_PLUGIN}, .environment = {{"HOST_CANARY", "must-not-arrive"}}});
    ASSERT_TRUE(spawned) << spawned.error().message;
    worker_ = std::make_unique<WorkerProcess>(*std::move(spawned));
    started_ = true;
    ASSERT_TRUE(ask("initialize", {}));
  }
  void kill_and_start_again() {
    worker_->kill(SIGKILL);
    ASSERT_TRUE(worker_->wait_exit(fake_limit));
    start();
  }

  WorkerProcess& worker() { return *worker_; }
  std::int64_t call(std::string_view method, const bj::object& more) {
    return worker().call(method, joined(base_, more), "inv-1");
  }
  Result<bj::value> ask(std::string_view method, const bj::object& more) {
    return worker().ask(method, joined(base_, more), fake_limit, "inv-1");
  }
  bj::object acquire(const std::string& run_id) {
    const auto lease = ask("environmentAcquireLease", {{"runId", run_id}});
    EXPECT_TRUE(lease) << (lease ? "" : lease.error().message);
    if (!lease) return {};
    leases_.emplace_back(lease->at("providerLeaseId").as_string());
    folders_.emplace_back(lease->at("metadata").at("fakeRootDir").as_string());
    return lease->as_object();
  }
  bj::object execute(const bj::object& lease, const bj::object& command) {
    const auto answer = ask("environmentExecute", joined({{"lease", lease}}, command));
    EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
    return answer ? answer->as_object() : bj::object{};
  }
  bj::object base_{{"driverKey", "fake-plugin"},
                   {"companyId", "c"},
                   {"environmentId", "fake-plugin-test-" + std::to_string(::getpid())},
                   {"config", bj::object{}}};

 private:
  bool started_ = false;
  std::unique_ptr<WorkerProcess> worker_;
  std::vector<std::string> leases_;
  std::vector<std::string> folders_;
};

TEST_F(FakePlugin, ToleratesAnyConfigAndNormalizesItToThreeFields) {
  base_["config"] = {{"image", "  debian "}, {"timeoutMs", "soon"}, {"reuseLease", 1}, {"x", 2}};
  const auto answer = ask("environmentValidateConfig", {});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(bj::serialize(*answer), R"({"ok":true,"normalizedConfig":)"
                                    R"({"image":"debian","timeoutMs":300000,"reuseLease":false}})");
  const auto probed = ask("environmentProbe", {});
  ASSERT_TRUE(probed) << probed.error().message;
  EXPECT_EQ(probed->at("summary"), "Fake sandbox provider is ready for image debian.");
}

TEST_F(FakePlugin, ACommandSeesItsOwnVariablesAndAPathAndNothingElse) {
  const bj::object lease = acquire("r1");
  const bj::object answer =
      execute(lease, {{"command", "env"}, {"env", bj::object{{"A", "1"}, {"B", "x y"}}}});
  EXPECT_EQ(answer.at("stdout"), "A=1\nB=x y\nPATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin\n");
  const bj::object given =
      execute(lease, {{"command", "/usr/bin/env"}, {"env", bj::object{{"PATH", "/nowhere"}}}});
  EXPECT_EQ(given.at("stdout"), "PATH=/nowhere\n");
}

TEST_F(FakePlugin, ExecutesWithoutAShellInTheGivenFolderWithItsInput) {
  const bj::object lease = acquire("r1");
  const bj::object answer = execute(
      lease, joined(shell("cat; pwd; printf '%s' \"$1\" >&2; exit 3"), {{"stdin", "in\n"}}));
  EXPECT_EQ(answer.at("exitCode"), 3);
  EXPECT_EQ(answer.at("timedOut"), false);
  const std::string cwd{lease.at("metadata").at("remoteCwd").as_string()};
  EXPECT_EQ(answer.at("stdout").as_string(), "in\n" + cwd + "\n");
  const bj::object echoed =
      execute(lease, {{"command", "printf"}, {"args", {"%s|", "a b", "$HOME", "\xE2\x80\xA8"}}});
  EXPECT_EQ(echoed.at("stdout"), "a b|$HOME|\xE2\x80\xA8|");
  EXPECT_EQ(echoed.at("metadata").at("commandLine"), "printf %s| a b $HOME \xE2\x80\xA8");
}

TEST_F(FakePlugin, InputLargerThanAnyBufferArrivesWholeOrIsDroppedByWhoDoesNotRead) {
  const bj::object lease = acquire("r1");
  const std::string input(5'000'000, 'x');
  EXPECT_EQ(execute(lease, {{"command", "wc"}, {"args", {"-c"}}, {"stdin", input}}).at("stdout"),
            "5000000\n");
  EXPECT_EQ(execute(lease, {{"command", "true"}, {"stdin", input}}).at("exitCode"), 0);
}

TEST_F(FakePlugin, OutputComesWhileTheCommandStillRuns) {
  const bj::object lease = acquire("r1");
  const std::int64_t id =
      call("environmentExecute",
           joined({{"lease", lease}}, shell("echo ready; while [ ! -e go ]; do sleep 0.02; done")));
  const auto has_spoken = [this] {
    return std::ranges::any_of(worker().notifications, [](const bj::object& heard) {
      return heard.at("method") == "execute.log" && heard.at("params").at("chunk") == "ready\n";
    });
  };
  ASSERT_TRUE(worker().read_until(has_spoken, fake_limit));
  execute(lease, {{"command", "touch"}, {"args", {"go"}}});
  const auto answer = worker().answer_to(id, fake_limit);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->at("result").at("stdout"), "ready\n");
}

TEST_F(FakePlugin, ATimeLimitEndsTheWholeTreeAlsoOneThatIgnoresSigterm) {
  const bj::object lease = acquire("r1");
  const bj::object polite =
      execute(lease, joined(shell("sleep 600 & sleep 600"), {{"timeoutMs", 200}}));
  EXPECT_EQ(polite.at("timedOut"), true);
  EXPECT_TRUE(polite.at("exitCode").is_null());
  const bj::object stubborn = execute(
      lease, joined(shell("trap '' TERM; while :; do sleep 1; done"), {{"timeoutMs", 200}}));
  EXPECT_EQ(stubborn.at("timedOut"), true);
  EXPECT_EQ(stubborn.at("signal"), "SIGKILL");
}

TEST_F(FakePlugin, ACommandThatCannotStartIsAnErrorAndNoExitCode) {
  const bj::object lease = acquire("r1");
  const auto answer = ask("environmentExecute", {{"lease", lease}, {"command", "no-such-thing"}});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::plugin_call_failed);
}

TEST_F(FakePlugin, AnAcquireThatIsRepeatedGivesTheSameSandbox) {
  const bj::object first = acquire("r1");
  EXPECT_EQ(first.at("metadata").at("resumedLease"), false);
  const bj::object again = acquire("r1");
  EXPECT_EQ(again.at("providerLeaseId"), first.at("providerLeaseId"));
  EXPECT_EQ(again.at("metadata").at("resumedLease"), true);
  EXPECT_NE(acquire("r2").at("providerLeaseId"), first.at("providerLeaseId"));
}

TEST_F(FakePlugin, WithReuseTheSandboxIsTheEnvironmentsAndSurvivesARelease) {
  base_["config"] = {{"reuseLease", true}};
  const bj::object lease = acquire("r1");
  const std::string id{lease.at("providerLeaseId").as_string()};
  EXPECT_EQ(id, "fake-plugin://" + std::string{base_.at("environmentId").as_string()});
  execute(lease, {{"command", "touch"}, {"args", {"kept"}}});
  ASSERT_TRUE(ask("environmentReleaseLease", {{"providerLeaseId", id}}));
  const auto resumed = ask("environmentResumeLease", {{"providerLeaseId", id}});
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->at("metadata").at("resumedLease"), true);
  EXPECT_EQ(execute(lease, {{"command", "ls"}}).at("stdout"), "kept\n");
}

TEST_F(FakePlugin, AWorkerThatWasKilledFindsItsSandboxesAndEndsWhatRanInThem) {
  const bj::object lease = acquire("r1");
  const std::string root{lease.at("metadata").at("fakeRootDir").as_string()};
  call("environmentExecute", joined({{"lease", lease}}, shell("touch begun; sleep 600 & wait")));
  const auto begun = [&] { return exists(root + "/workspace/begun"); };
  const auto until = std::chrono::steady_clock::now() + fake_limit;
  while (!begun() && std::chrono::steady_clock::now() < until) {
    worker().read_until([] { return false; }, 5ms);
  }
  ASSERT_TRUE(begun());
  kill_and_start_again();
  const auto gone =
      ask("environmentDestroyLease", bj::object{{"providerLeaseId", lease.at("providerLeaseId")}});
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_FALSE(exists(root));
}

TEST_F(FakePlugin, EndingALeaseWithoutAnIdOrTwiceIsFine) {
  const bj::object lease = acquire("r1");
  const bj::object named{{"providerLeaseId", lease.at("providerLeaseId")}};
  for (const char* method : {"environmentReleaseLease", "environmentDestroyLease"}) {
    EXPECT_TRUE(ask(method, {{"providerLeaseId", nullptr}}));
    EXPECT_TRUE(ask(method, named));
    EXPECT_TRUE(ask(method, named));
  }
}

TEST_F(FakePlugin, ASetupSessionBecomesATemplateOrIsCancelled) {
  const auto opened = ask("environmentStartInteractiveSetup", {{"sessionId", "s1"}});
  ASSERT_TRUE(opened) << opened.error().message;
  const bj::object named{{"providerLeaseId", opened->at("providerLeaseId")}};
  EXPECT_EQ(opened->at("status"), "waiting_for_user");
  const auto captured = ask("environmentCaptureTemplate", named);
  ASSERT_TRUE(captured) << captured.error().message;
  const std::string environment{base_.at("environmentId").as_string()};
  EXPECT_EQ(captured->at("templateRef").as_string(), "fake-template:" + environment + ":s1");
  EXPECT_EQ(ask("environmentGetInteractiveSetup", named)->at("status"), "promoted");
  EXPECT_EQ(ask("environmentCancelInteractiveSetup", named)->at("status"), "cancelled");
  EXPECT_EQ(ask("environmentCancelInteractiveSetup", named)->at("status"), "missing");
  EXPECT_EQ(ask("environmentDeleteTemplate", {{"templateRef", captured->at("templateRef")}})
                ->at("deleted"),
            true);
}

TEST_F(FakePlugin, ASandboxThatIsThereBecomesATemplateOfItsRun) {
  const bj::object lease = acquire("r1");
  const bj::object named{{"providerLeaseId", lease.at("providerLeaseId")}};
  const auto captured = ask("environmentCaptureTemplate", named);
  ASSERT_TRUE(captured) << captured.error().message;
  const std::string environment{base_.at("environmentId").as_string()};
  EXPECT_EQ(captured->at("templateRef").as_string(), "fake-template:" + environment + ":r1");
  ASSERT_TRUE(ask("environmentDestroyLease", named));
  EXPECT_FALSE(ask("environmentCaptureTemplate", named)) << "there is nothing to capture";
}

}  // namespace
}  // namespace berth::fake_plugin_test
