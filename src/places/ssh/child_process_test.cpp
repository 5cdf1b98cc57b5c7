#include "places/ssh/child_process.hpp"

#include "base/files.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <optional>

namespace berth::places::ssh {
namespace {

using namespace std::chrono_literals;

class ChildProcessTest : public testing::Test {
 protected:
  template <class T>
  Result<T> await(Task<T> task) {
    std::optional<Result<T>> end;
    asio::co_spawn(loop, std::move(task),
                   [&](const std::exception_ptr&, Result<T> result) { end = std::move(result); });
    loop.restart();
    loop.run_for(60s);
    return end.value_or(fail(Errc::timed_out, "the test's own limit"));
  }
  static ProgramCall shell(std::string script, std::vector<std::string> environment = {}) {
    return {.program = "/bin/sh",
            .arguments = {"-c", std::move(script)},
            .environment = std::move(environment)};
  }

  asio::io_context loop;
};

Task<Finished> run_with_input(ProgramCall call, std::string input) {
  BERTH_CO_TRY(ChildProcess child, ChildProcess::start(co_await asio::this_coro::executor, call));
  co_return co_await finish(child, input, {});
}

TEST_F(ChildProcessTest, BothStreamsAndTheStatusComeBack) {
  const auto end = await(run_program(shell("echo out; echo err >&2; exit 7"), {}));
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->out, "out\n");
  EXPECT_EQ(end->err, "err\n");
  EXPECT_EQ(end->status.code, 7);
  EXPECT_FALSE(end->timed_out);
}

TEST_F(ChildProcessTest, AProgramHasNothingOfOurEnvironment) {
  const auto end =
      await(run_program({.program = "/usr/bin/env", .environment = {"ONLY=this"}}, {}));
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->out, "ONLY=this\n");
}

TEST_F(ChildProcessTest, InputLargerThanAPipeArrivesWhileOutputFlows) {
  const std::string input(1'000'000, 'x');
  auto end = await(run_with_input({.program = "/bin/cat"}, input));
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(end->out.size(), RunLimits{}.output_bytes) << "what is over the limit is dropped";
  EXPECT_TRUE(end->status.is_success());
}

TEST_F(ChildProcessTest, PastItsTimeAProgramIsKilledWithItsChildren) {
  const auto begun = std::chrono::steady_clock::now();
  const auto end = await(run_program(shell("sleep 100 & echo $!; sleep 100"), {.time = 200ms}));
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_TRUE(end->timed_out);
  EXPECT_EQ(end->status.signal, SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 50s);
}

TEST_F(ChildProcessTest, AProgramThatIsNotThereIsAnError) {
  const auto end = await(run_program({.program = "/no/such/program"}, {}));
  ASSERT_FALSE(end);
  EXPECT_TRUE(end.error().message.contains("/no/such/program")) << end.error().message;
}

TEST_F(ChildProcessTest, WhatIsDestroyedIsKilledAndReaped) {
  pid_t pid = 0;
  {
    auto child = ChildProcess::start(loop.get_executor(), shell("sleep 100"));
    ASSERT_TRUE(child) << child.error().message;
    pid = child->pid();
  }
  loop.run_for(60s);
  EXPECT_TRUE(loop.stopped());
  EXPECT_NE(::kill(pid, 0), 0) << "it lives, or is a zombie";
}

}  // namespace
}  // namespace berth::places::ssh
