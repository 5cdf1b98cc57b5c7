#include "integration/plugin_fixture.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "plugins/spawn.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace berth::plugin_test {
namespace {

using namespace std::chrono_literals;

class Silent final : public Peer {
 public:
  asio::awaitable<Reply> answer(Request request) override {
    co_return std::unexpected(RpcError{rpc_code::method_not_found, request.method});
  }
  bool hear(Notification /*notification*/) override { return true; }
  void unread(std::string_view /*why*/, std::string_view /*line*/) override {}
};

bool is_alive(pid_t pid) {
  const auto stat = keeper::process_stat(pid);
  return stat && stat->state != 'Z';
}

class PluginWorkerTest : public PluginTest {
 protected:
  void spawn(const std::string& options = "", std::int64_t memory = std::int64_t{1} << 30) {
    Launching how = launching();
    how.memory_bytes_max = memory;
    Result<std::unique_ptr<Worker>> made =
        Worker::spawn(loop_.get_executor(), command_of(manifest(options)), how, peer_);
    ASSERT_TRUE(made) << made.error().message;
    worker_ = *std::move(made);
  }
  void TearDown() override {
    if (worker_) {
      const Result<> closed = await(worker_->close());
      EXPECT_TRUE(closed) << closed.error().message;
    }
    worker_.reset();
    PluginTest::TearDown();
  }
  CallResult call(std::string method, bj::object params = {}) {
    std::optional<CallResult> answer;
    asio::co_spawn(loop_, worker_->channel().call(std::move(method), std::move(params)),
                   [&](std::exception_ptr thrown, CallResult result) {
                     if (thrown) std::rethrow_exception(thrown);
                     answer = std::move(result);
                   });
    EXPECT_TRUE(run_until([&] { return answer.has_value(); }));
    return answer ? *std::move(answer) : std::unexpected(CallFailure{});
  }

  Silent peer_;
  std::unique_ptr<Worker> worker_;
};

TEST_F(PluginWorkerTest, RunsAsNobodyInParticularWithAnEnvironmentFromNothing) {
  spawn();
  const CallResult facts = call("facts");
  ASSERT_TRUE(facts) << facts.error().message;
  if (::geteuid() == 0) {
    EXPECT_EQ(facts->at("uid"), 61'399);
    EXPECT_EQ(facts->at("gid"), 61'399);
    EXPECT_TRUE(facts->at("groups").as_array().empty());
  }
  EXPECT_EQ(facts->at("noNewPrivs"), true);
  const bj::object& env = facts->at("env").as_object();
  EXPECT_EQ(env.at("PAPERCLIP_PLUGIN_ID"), bj::string(id_.str()));
  EXPECT_EQ(env.at("OPENAI_API_KEY"), "passed-through");
  EXPECT_EQ(env.at("NODE_ENV"), "production");
  EXPECT_EQ(env.at("TZ"), "UTC");
  EXPECT_FALSE(env.contains("HOME"));
  EXPECT_FALSE(env.contains("E2B_API_KEY")) << "it is for another package";
  EXPECT_LE(facts->at("fds").as_array().size(), 4U) << "three streams, and that of listdir";
}

TEST_F(PluginWorkerTest, EndsAtShutdownByItself) {
  spawn();
  ASSERT_TRUE(call("health"));
  const Result<WorkerExit> exit = await(worker_->stop());
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
  EXPECT_FALSE(worker_->reason());
}

TEST_F(PluginWorkerTest, IsTerminatedWhenItDoesNotAnswerShutdown) {
  spawn("stop=hang");
  ASSERT_TRUE(await(initialize(*worker_, manifest("stop=hang"), {})));
  const StopTimes times{.shutdown = 100ms, .exit = 50ms, .terminate = 20s, .kill = 20s};
  const Result<WorkerExit> exit = await(worker_->stop(times));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, "SIGTERM");
}

TEST_F(PluginWorkerTest, TakesAllItsProcessesWithIt) {
  spawn();
  const CallResult pid = call("scatter");
  ASSERT_TRUE(pid) << pid.error().message;
  const auto scattered = static_cast<pid_t>(pid->as_int64());
  ASSERT_TRUE(is_alive(scattered));
  ASSERT_TRUE(await(worker_->stop()));
  EXPECT_FALSE(is_alive(scattered));
}

TEST_F(PluginWorkerTest, ThatCrashesLeavesItsLastWords) {
  spawn();
  const CallResult lost = call("crash");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().cause, CallFailure::Cause::gone);
  // Calls of every company end with this message.
  EXPECT_EQ(lost.error().message, "Worker process exited (code=3, signal=null)");
  EXPECT_TRUE(worker_->stderr_tail().contains("last words"));
}

TEST_F(PluginWorkerTest, CannotTakeMoreMemoryThanItMay) {
  spawn("", std::int64_t{256} << 20);
  const CallResult grown = call("grow");
  ASSERT_TRUE(grown) << grown.error().message;
  ASSERT_TRUE(grown->as_object().contains("refusedAfterMb"));
  EXPECT_LT(grown->at("refusedAfterMb").as_int64(), 256);
}

TEST_F(PluginWorkerTest, ThatTakesMoreMemoryByAWayOfItsOwnIsKilledAndTheReasonIsTold) {
  namespace sandbox = keeper::sandbox;
  const sandbox::CgroupLayout layout = sandbox::detect_layout();
  if (!layout.has(sandbox::Controller::memory)) {
    GTEST_SKIP() << "no control group limits memory here: " << layout.remedy;
  }
  spawn("", std::int64_t{128} << 20);
  EXPECT_FALSE(call("grow", {{"shared", true}}));
  ASSERT_TRUE(await(worker_->ended()));
  const std::string said = worker_->end_record();
  EXPECT_TRUE(said.contains("out of memory, the limit for all its processes is 128 MB")) << said;
  const std::string group = "plugin-" + std::to_string(worker_->pid());
  for (const std::string& left : sandbox::find_leftovers(layout)) {
    EXPECT_FALSE(left.contains(group + ".")) << left;
  }
}

TEST_F(PluginWorkerTest, WhoseProgramIsMissingSaysSo) {
  const WorkerCommand nothing{.argv = {"/no/such/program"}};
  Result<std::unique_ptr<Worker>> made =
      Worker::spawn(loop_.get_executor(), nothing, launching(), peer_);
  ASSERT_TRUE(made);
  worker_ = *std::move(made);
  ASSERT_TRUE(await(worker_->ended()));
  EXPECT_TRUE(worker_->stderr_tail().contains("/no/such/program")) << worker_->stderr_tail();
}

// Simulates the server: a process that starts a plugin's program and is killed.
TEST_F(PluginWorkerTest, NeverOutlivesTheServer) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const WorkerCommand sleeper{.argv = {"/bin/sleep", "1000"}};
  const Launching how = launching();
  const pid_t server = ::fork();
  if (server == 0) {
    Result<Spawned> made = spawn_program(sleeper, how);
    const pid_t pid = made ? made->pid : 0;
    (void)!::write(ends[1], &pid, sizeof pid);
    ::pause();
    ::_exit(0);
  }
  pid_t keeper_pid = 0;
  ASSERT_EQ(::read(ends[0], &keeper_pid, sizeof keeper_pid), ssize_t{sizeof keeper_pid});
  ASSERT_GT(keeper_pid, 0);
  std::vector<pid_t> all;
  ASSERT_TRUE(run_until([&] {
    all = keeper::descendants_of(keeper_pid);
    return !all.empty();
  }));
  all.push_back(keeper_pid);
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  EXPECT_TRUE(run_until([&] { return std::ranges::none_of(all, is_alive); }));
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace berth::plugin_test
