#include "base/files.hpp"
#include "integration/place_ssh_fixture.hpp"

#include <sys/wait.h>

#include <csignal>

// Commands held by a shell script, where no keeper can run.
namespace berth::place_test {
namespace {

using namespace places;

INSTANTIATE_TEST_SUITE_P(Shell, PlaceContract,
                         testing::ValuesIn(places_if_there_is_an_sshd(&make_shell_place)));

class ShellTest : public SshTest {
 protected:
  void SetUp() override {
    SshTest::SetUp();
    lease_ = new_lease();
  }
  void TearDown() override {
    release(*lease_);
    SshTest::TearDown();
  }
  PlaceRef& lease() { return *lease_; }
  Ended run(const Command& command, Collected& output) {
    return SshTest::run(lease(), command, output);
  }
  Errc code_of(const Command& command) {
    const auto started = await(commands().start(lease(), command));
    return started ? Errc::bug : started.error().code;
  }

 private:
  std::optional<PlaceRef> lease_;
};
INSTANTIATE_TEST_SUITE_P(Shell, ShellTest,
                         testing::ValuesIn(places_if_there_is_an_sshd(&make_shell_place)));

TEST_P(ShellTest, StreamsAndExitCodeComeBack) {
  EXPECT_EQ(lease().metadata.at("supervision"), bj::value("sh"));
  Collected output;
  const Ended ended = run(shell("echo out; echo err >&2; pwd; exit 3"), output);
  EXPECT_EQ(ended.outcome, Outcome::exited);
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(output.out, "out\n" + sshd().workspace() + "\n");
  EXPECT_EQ(output.err, "err\n");
}

TEST_P(ShellTest, ACommandHasTheGivenEnvironmentAndNothingElse) {
  Command env = shell("");
  env.argv = {"env"};
  env.environment.emplace("GREETING", Secret{"it's \"here\"\n#go x\nand $HOME `id` \\n"});
  env.environment.emplace("d", Secret{"shadows a variable of the script"});
  Collected output;
  run(env, output);
  EXPECT_EQ(output.out,
            "GREETING=it's \"here\"\n#go x\nand $HOME `id` \\n\n"
            "PATH=/usr/local/bin:/usr/bin:/bin\n"
            "d=shadows a variable of the script\n");
}

TEST_P(ShellTest, ArgumentsArriveAsTheyAre) {
  Command printf = shell("");
  printf.argv = {"printf", "%s|", "two words", "", "$HOME `id` 'x' \"y\"", "line\nbreak", "\xff"};
  Collected output;
  run(printf, output);
  EXPECT_EQ(output.out, "two words||$HOME `id` 'x' \"y\"|line\nbreak|\xff|");
}

TEST_P(ShellTest, StdinIsTheGivenBytesAndThenItsEnd) {
  Command cat = shell("cat");
  const std::string bytes = std::string{"a\0b", 3} + std::string(300'000, 'x') + "\n";
  cat.input = StdinBytes{Secret{bytes}};
  Collected output;
  EXPECT_EQ(run(cat, output).exit_code, 0);
  EXPECT_EQ(output.out, bytes);
  Collected empty;
  EXPECT_EQ(run(shell("cat", "e2"), empty).exit_code, 0);
  EXPECT_EQ(empty.out, "");
}

TEST_P(ShellTest, APipeTakesInputWhileTheCommandRunsAlsoFromANewServer) {
  Command cat = shell("cat");
  cat.input = StdinPipe{};
  ASSERT_TRUE(await(commands().start(lease(), cat)));
  Collected output;
  auto following = begin(commands().follow(lease(), cat.exec_id, 0, output));
  ASSERT_TRUE(await(commands().send(lease(), cat.exec_id, std::string{"first\n"})));
  ASSERT_TRUE(run_until([&] { return output.out == "first\n"; })) << output.out;
  give_up(following);
  restart();
  Collected rest;
  following = begin(commands().follow(lease(), cat.exec_id, output.ends.back(), rest));
  const std::string more(1'000'000, 'y');
  ASSERT_TRUE(await(commands().send(lease(), cat.exec_id, more)));
  ASSERT_TRUE(await(commands().send(lease(), cat.exec_id, EndOfInput{})));
  const auto ended = finish(following);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(rest.out, more);
}

TEST_P(ShellTest, BinaryOutputAndMegabytesArriveByteForByte) {
  Collected output;
  run(shell("for i in $(seq 0 255); do printf \"\\\\$(printf %03o $i)\"; done"), output);
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(output.out, all);
  Collected large;
  run(shell("head -c 5000000 /dev/zero | tr '\\0' z; head -c 3000000 /dev/zero >&2", "e2"), large);
  EXPECT_EQ(large.out, std::string(5'000'000, 'z'));
  EXPECT_EQ(large.err, std::string(3'000'000, '\0'));
}

TEST_P(ShellTest, PastItsTimeACommandEndsEvenIfItIgnoresSigterm) {
  Command stubborn = shell("trap '' TERM; echo $$; while :; do sleep 1; done");
  stubborn.timeout_ms = 500;
  stubborn.grace_ms = 300;
  Collected output;
  const Ended ended = run(stubborn, output);
  EXPECT_EQ(ended.outcome, Outcome::timed_out);
  EXPECT_EQ(ended.signal, "SIGKILL");
  EXPECT_FALSE(is_running(static_cast<pid_t>(std::strtol(output.out.c_str(), nullptr, 10))));
}

TEST_P(ShellTest, CancelEndsTheGroup) {
  const Command tree = shell("sleep 100 & echo $!; exec sleep 100");
  const auto started = await(commands().start(lease(), tree));
  ASSERT_TRUE(started) << started.error().message;
  Collected output;
  const auto following = begin(commands().follow(lease(), tree.exec_id, 0, output));
  ASSERT_TRUE(run_until([&] { return output.out.contains('\n'); }));
  const auto child = static_cast<pid_t>(std::strtol(output.out.c_str(), nullptr, 10));
  ASSERT_TRUE(is_running(child));
  const auto cancelled = await(commands().cancel(lease(), tree.exec_id, 200));
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_FALSE(is_running(child));
  EXPECT_FALSE(is_running(static_cast<pid_t>(started->pid.value_or(0))));
  const auto ended = finish(following);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::stopped);
}

TEST_P(ShellTest, WhatACommandLeavesInItsGroupDiesWithIt) {
  Collected output;
  const Ended ended = run(shell("(trap '' TERM; exec sleep 100) & echo $!"), output);
  EXPECT_EQ(ended.outcome, Outcome::exited);
  EXPECT_FALSE(is_running(static_cast<pid_t>(std::strtol(output.out.c_str(), nullptr, 10))));
}

TEST_P(ShellTest, ASignalReachesTheCommandAndIsNamed) {
  const Command sleep = shell("echo ready; exec sleep 100");
  ASSERT_TRUE(await(commands().start(lease(), sleep)));
  Collected output;
  const auto following = begin(commands().follow(lease(), sleep.exec_id, 0, output));
  ASSERT_TRUE(run_until([&] { return output.out == "ready\n"; }));
  ASSERT_TRUE(await(commands().send(lease(), sleep.exec_id, SignalNumber{SIGUSR1})));
  const auto ended = finish(following);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::signaled);
  EXPECT_EQ(ended->signal, "SIGUSR1");
}

TEST_P(ShellTest, WhatIsNotRenewedEnds) {
  const Command sleep = shell("exec sleep 100");
  ASSERT_TRUE(await(commands().start(lease(), sleep)));
  ASSERT_TRUE(await(commands().renew(lease(), 300)));
  Collected output;
  const auto ended = await(commands().follow(lease(), sleep.exec_id, 0, output));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::lapsed);
}

TEST_P(ShellTest, StartedTwiceACommandRunsOnce) {
  Command once = shell("echo x >> count; cat count; sleep 0.2");
  const auto first = begin(commands().start(lease(), once));
  const auto second = begin(commands().start(lease(), once));
  const auto one = finish(first);
  const auto two = finish(second);
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(one->pid, two->pid);
  Collected output;
  run(once, output);
  EXPECT_EQ(output.out, "x\n");
}

TEST_P(ShellTest, WhenTheSupervisorIsKilledTheCommandIsLostAndDoesNotLiveOn) {
  const Command sleep = shell("echo $$; exec sleep 100");
  const auto started = await(commands().start(lease(), sleep));
  ASSERT_TRUE(started) << started.error().message;
  const auto pid = static_cast<pid_t>(started->pid.value_or(0));
  const std::string folder =
      ssh_ground().berth_folder() + "/leases/" + lease().key.str() + "/sh-e1";
  const auto supervisor = read_file(folder + "/supervisor", 100);
  ASSERT_TRUE(supervisor) << supervisor.error().message;
  const auto killed = static_cast<pid_t>(std::strtol(supervisor->c_str(), nullptr, 10));
  ASSERT_EQ(::kill(killed, SIGKILL), 0);
  // Orphans on this machine become the test's children; on a real host init reaps them.
  ASSERT_TRUE(eventually([&] { return ::waitpid(killed, nullptr, WNOHANG) != 0; }));
  Collected output;
  const auto ended = await(commands().follow(lease(), sleep.exec_id, 0, output));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::lost);
  EXPECT_TRUE(eventually([&] { return !is_running(pid); }));
}

TEST_P(ShellTest, OutputPastTheLimitIsCounted) {
  Command loud = shell("head -c 300000 /dev/zero");
  loud.output_bytes_max = 100'000;
  Collected output;
  const Ended ended = run(loud, output);
  EXPECT_EQ(output.out.size(), 100'000U);
  EXPECT_EQ(ended.bytes_over_limit, 200'000);
}

TEST_P(ShellTest, ABadCommandIsRefusedWithItsReason) {
  Command unknown = shell("", "u");
  unknown.argv = {"no-such-command-of-berth"};
  EXPECT_EQ(code_of(unknown), Errc::command_not_found);
  EXPECT_EQ(code_of(unknown), Errc::command_not_found) << "also the second time";
  Command lost = shell("true", "l");
  lost.cwd = sshd().workspace() + "/missing";
  EXPECT_EQ(code_of(lost), Errc::working_directory_missing);
  Command plain = shell("", "p");
  plain.argv = {"/etc/passwd"};
  EXPECT_EQ(code_of(plain), Errc::command_not_executable);
  Command bad_name = shell("true", "n");
  bad_name.environment.emplace("NOT-A-NAME", Secret{"x"});
  EXPECT_EQ(code_of(bad_name), Errc::variable_name_invalid);
  Command terminal = shell("true", "t");
  terminal.terminal = core::TerminalSize{};
  EXPECT_EQ(code_of(terminal), Errc::execution_unsupported);
}

TEST_P(ShellTest, WhatWasNeverStartedIsNotFollowed) {
  Collected output;
  const auto ended = await(commands().follow(lease(), "never", 0, output));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::exec_not_found);
  const auto sent = await(commands().send(lease(), "never", std::string{"x"}));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::exec_not_found);
  EXPECT_TRUE(await(commands().cancel(lease(), "never", 0)));
}

}  // namespace
}  // namespace berth::place_test
