#include "integration/place_contract.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

// What applies to every place that executes commands.
namespace berth::place_test {

using namespace places;

namespace {

// Leaves its session and its parent, ignores SIGTERM, and prints its pid.
std::string stubborn_daemon() {
  return "setsid sh -c '(sh -c \"trap \\\"\\\" TERM; echo \\$\\$; while :; do sleep 1; done\" "
         "&)'; ";
}

}  // namespace

TEST_P(CommandContract, ACommandsStreamsAndExitCodeComeBack) {
  Collected output;
  const Ended ended = run(shell("echo one; echo wrong >&2; echo two; exit 3"), output);
  EXPECT_EQ(output.out, "one\ntwo\n");
  EXPECT_EQ(output.err, "wrong\n");
  EXPECT_EQ(output.notes, "");
  EXPECT_EQ(ended.outcome, Outcome::exited);
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.signal, std::nullopt);
  EXPECT_EQ(ended.left_behind, 0);
  EXPECT_LE(ended.started_at, ended.ended_at);
  EXPECT_EQ(ended.usage.at("stdoutBytes").to_number<int>(), 8);
}

TEST_P(CommandContract, TheOrderWithinAStreamIsThatOfTheCommand) {
  Collected output;
  run(shell("for i in $(seq 2000); do echo $i; echo $i >&2; done"), output);
  std::string wanted;
  for (int i = 1; i <= 2000; ++i) wanted += std::to_string(i) + "\n";
  EXPECT_EQ(output.out, wanted);
  EXPECT_EQ(output.err, wanted);
}

TEST_P(CommandContract, ACommandHasTheGivenEnvironmentAndNothingElse) {
  Command env = command({"env"});
  env.environment.emplace("GREETING", Secret{"hello world\nand more"});
  Collected output;
  run(env, output);
  EXPECT_EQ(output.out, "GREETING=hello world\nand more\nPATH=/usr/local/bin:/usr/bin:/bin\n");
}

TEST_P(CommandContract, ArgumentsArriveAsTheyAre) {
  Collected output;
  run(command({"printf", "%s|", "two words", "", "$HOME `id` 'x' \"y\"", "line\nbreak", "\xff"}),
      output);
  EXPECT_EQ(output.out, "two words||$HOME `id` 'x' \"y\"|line\nbreak|\xff|");
}

TEST_P(CommandContract, StdinIsTheGivenBytesAndThenItsEnd) {
  Command cat = command({"cat"});
  const std::string bytes = std::string{"a\0b", 3} + std::string(300'000, 'x') + "\n";
  cat.input = StdinBytes{Secret{bytes}};
  Collected output;
  EXPECT_EQ(run(cat, output).exit_code, 0);
  EXPECT_EQ(output.out, bytes);
}

TEST_P(CommandContract, StdinIsEmptyUnlessItIsGiven) {
  Collected output;
  EXPECT_EQ(run(command({"cat"}), output).exit_code, 0);
  EXPECT_EQ(output.out, "");
}

TEST_P(CommandContract, APipeTakesInputWhileTheCommandRuns) {
  Command cat = command({"cat"});
  cat.input = StdinPipe{};
  start(cat);
  Collected output;
  const auto following = begin_follow(cat.exec_id, output);
  ASSERT_TRUE(await(commands().send(lease(), cat.exec_id, std::string{"first\n"})));
  EXPECT_TRUE(run_until([&] { return output.out == "first\n"; })) << output.out;
  const std::string more(1'000'000, 'y');
  ASSERT_TRUE(await(commands().send(lease(), cat.exec_id, more)));
  ASSERT_TRUE(await(commands().send(lease(), cat.exec_id, EndOfInput{})));
  const Result<Ended> ended = finish(following);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->exit_code, 0);
  EXPECT_EQ(output.out, "first\n" + more);
}

TEST_P(CommandContract, ATerminalHasItsSizeAndMayGetAnother) {
  Command stty = shell("trap 'stty size; exit 0' WINCH; stty size; while :; do sleep 0.05; done");
  stty.terminal = core::TerminalSize{.columns = 101, .rows = 37};
  start(stty);
  Collected output;
  const auto following = begin_follow(stty.exec_id, output);
  ASSERT_TRUE(run_until([&] { return output.out.contains("37 101"); })) << output.out;
  const core::TerminalSize larger{.columns = 120, .rows = 50};
  ASSERT_TRUE(await(commands().send(lease(), stty.exec_id, larger)));
  const Result<Ended> ended = finish(following);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_TRUE(output.out.contains("50 120")) << output.out;
}

TEST_P(CommandContract, ASignalReachesTheCommandAndIsNamed) {
  const Command sleep = shell("echo ready; exec sleep 100");
  start(sleep);
  Collected output;
  const auto following = begin_follow(sleep.exec_id, output);
  ASSERT_TRUE(run_until([&] { return output.out == "ready\n"; }));
  ASSERT_TRUE(await(commands().send(lease(), sleep.exec_id, SignalNumber{SIGUSR1})));
  const Result<Ended> ended = finish(following);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::signaled);
  EXPECT_EQ(ended->signal, "SIGUSR1");
  EXPECT_EQ(ended->exit_code, std::nullopt);
}

TEST_P(CommandContract, PastItsTimeACommandEndsEvenIfItIgnoresSigterm) {
  Command stubborn = shell("trap '' TERM; echo $$; while :; do sleep 1; done");
  stubborn.timeout_ms = 500;
  stubborn.grace_ms = 300;
  Collected output;
  const Ended ended = run(stubborn, output);
  EXPECT_EQ(ended.outcome, Outcome::timed_out);
  EXPECT_EQ(ended.signal, "SIGKILL");
  EXPECT_FALSE(is_running(pid_in(output)));
}

TEST_P(CommandContract, PastItsTimeACommandMayEndItselfWithinTheGrace) {
  Command polite = shell("trap 'echo bye; exit 9' TERM; while :; do sleep 0.05; done");
  polite.timeout_ms = 500;
  polite.grace_ms = 60'000;
  Collected output;
  const Ended ended = run(polite, output);
  EXPECT_EQ(ended.outcome, Outcome::timed_out);
  EXPECT_EQ(ended.exit_code, 9);
  EXPECT_EQ(output.out, "bye\n");
}

TEST_P(CommandContract, CancelEndsTheWholeTreeAlsoADaemonThatIgnoresSigterm) {
  const Command tree = shell(stubborn_daemon() + "exec sleep 100");
  const pid_t main = pid_of(start(tree));
  Collected output;
  const auto following = begin_follow(tree.exec_id, output);
  const pid_t daemon = pid_in(output);
  ASSERT_TRUE(is_running(daemon));
  const Result<> cancelled = await(commands().cancel(lease(), tree.exec_id, 200));
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_FALSE(is_running(daemon));
  EXPECT_FALSE(is_running(main));
  const Result<Ended> ended = finish(following);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::stopped);
  EXPECT_TRUE(await(commands().cancel(lease(), tree.exec_id, 200)));
}

TEST_P(CommandContract, ADaemonThatACommandLeavesDiesWithIt) {
  Collected output;
  const Ended ended = run(shell(stubborn_daemon() + "sleep 0.3"), output);
  EXPECT_EQ(ended.outcome, Outcome::exited);
  EXPECT_FALSE(is_running(pid_in(output)));
}

TEST_P(CommandContract, FollowingGoesOnFromAnyOffsetThatAPieceEndedAt) {
  const Command lines = shell("for i in $(seq 200); do echo $i; sleep 0.001; done");
  Collected whole;
  run(lines, whole);
  ASSERT_GT(whole.ends.size(), 3U);
  Collected rest;
  follow(lines.exec_id, rest, whole.ends[whole.ends.size() / 2]);
  EXPECT_TRUE(whole.out.ends_with(rest.out)) << rest.out;
  EXPECT_LT(rest.out.size(), whole.out.size());
  EXPECT_GT(rest.out.size(), 0U);
  Collected nothing;
  EXPECT_EQ(follow(lines.exec_id, nothing, whole.ends.back()).exit_code, 0);
  EXPECT_EQ(nothing.out, "");
}

TEST_P(CommandContract, ACommandThatHasEndedIsFollowedAgainAndAgain) {
  const Command echo = shell("echo said; exit 4");
  Collected first;
  run(echo, first);
  for (int i = 0; i < 2; ++i) {
    Collected again;
    EXPECT_EQ(follow(echo.exec_id, again).exit_code, 4);
    EXPECT_EQ(again.out, "said\n");
  }
}

TEST_P(CommandContract, TwoFollowersBothGetEverything) {
  const Command slow = shell("for i in $(seq 50); do echo $i; sleep 0.01; done");
  start(slow);
  Collected one;
  Collected two;
  const auto first = begin_follow(slow.exec_id, one);
  const auto second = begin_follow(slow.exec_id, two);
  ASSERT_TRUE(finish(first));
  ASSERT_TRUE(finish(second));
  EXPECT_EQ(one.out, two.out);
  EXPECT_TRUE(one.out.ends_with("50\n"));
}

TEST_P(CommandContract, StartedTwiceACommandRunsOnce) {
  Command once = shell("echo x >> count; cat count; sleep 0.2");
  const auto first = begin(commands().start(lease(), once));
  const auto second = begin(commands().start(lease(), once));
  const Result<Started> one = finish(first);
  const Result<Started> two = finish(second);
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(one->pid, two->pid);
  EXPECT_EQ(one->started_at, two->started_at);
  // A restarted server gives the run a new token, so the command is no longer the same.
  once.environment.emplace("TOKEN", Secret{"new"});
  EXPECT_EQ(start(once).pid, one->pid);
  Collected output;
  follow(once.exec_id, output);
  EXPECT_EQ(output.out, "x\n");
  EXPECT_EQ(start(once).pid, one->pid);
  Collected again;
  follow(once.exec_id, again);
  EXPECT_EQ(again.out, "x\n");
}

TEST_P(CommandContract, ANewServerFollowsWhatTheOldOneStarted) {
  Command piped = shell("echo before; read line; echo $line; exit 5");
  piped.input = StdinPipe{};
  start(piped);
  Collected before;
  const auto following = begin_follow(piped.exec_id, before);
  ASSERT_TRUE(run_until([&] { return before.out == "before\n"; }));
  give_up(following);
  restart();
  Collected after;
  const auto again = begin_follow(piped.exec_id, after, before.ends.back());
  ASSERT_TRUE(await(commands().renew(lease(), 60'000)));
  ASSERT_TRUE(await(commands().send(lease(), piped.exec_id, std::string{"after\n"})));
  const Result<Ended> ended = finish(again);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(after.out, "after\n");
  EXPECT_EQ(ended->exit_code, 5);
}

TEST_P(CommandContract, WhenTheKeeperIsKilledTheCommandIsLostAndNothingOfItLives) {
  const Command tree = shell(stubborn_daemon() + "exec sleep 100");
  const pid_t main = pid_of(start(tree));
  Collected output;
  const auto following = begin_follow(tree.exec_id, output);
  const pid_t daemon = pid_in(output);
  const pid_t keeper = ground().keeper_of(lease());
  ASSERT_GT(keeper, 0);
  ASSERT_EQ(::kill(keeper, SIGKILL), 0);
  const Result<Ended> ended = finish(following);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::lost);
  EXPECT_EQ(ended->exit_code, std::nullopt);
  // The kernel ends the sandbox's processes after its keeper; the loss may be known before.
  EXPECT_TRUE(eventually([&] { return !is_running(daemon) && !is_running(main); }));
  // It is still known, and nothing more can be started.
  EXPECT_TRUE(await(commands().start(lease(), tree)));
  Collected again;
  EXPECT_EQ(follow(tree.exec_id, again).outcome, Outcome::lost);
  EXPECT_EQ(again.out, output.out);
  const Result<Started> next = await(commands().start(lease(), shell("echo next")));
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, Errc::process_lost);
}

TEST_P(CommandContract, WhatIsNotRenewedEnds) {
  const Command sleep = shell("exec sleep 100");
  start(sleep);
  ASSERT_TRUE(await(commands().renew(lease(), 300)));
  Collected output;
  EXPECT_EQ(follow(sleep.exec_id, output).outcome, Outcome::lapsed);
  const Result<Started> next = await(commands().start(lease(), shell("echo next")));
  ASSERT_FALSE(next);
  EXPECT_TRUE(next.error().code == Errc::lease_lapsed || next.error().code == Errc::keeper_stopping)
      << name_of(next.error().code);
}

TEST_P(CommandContract, ReleaseEndsWhatStillRuns) {
  const Command tree = shell(stubborn_daemon() + "exec sleep 100");
  start(tree);
  Collected output;
  const auto following = begin_follow(tree.exec_id, output);
  const pid_t daemon = pid_in(output);
  ASSERT_TRUE(await(place().release(lease(), core::LeaseEvent::release_expired)));
  EXPECT_FALSE(is_running(daemon));
  EXPECT_EQ(ground().leftovers(), std::vector<std::string>{});
  finish(following);
}

TEST_P(CommandContract, ReleaseRemovesWhatCommandsMadeHoweverTheyMadeIt) {
  Collected output;
  const Ended ended =
      run(shell("mkdir -p a/b/c && echo x > a/b/c/file && ln -s / a/root && chmod 0500 a/b && "
                "chmod 0 a/b/c && mkdir -p deep && cd deep && "
                "for i in $(seq 60); do mkdir dddddddddd && cd dddddddddd || exit 1; done"),
          output);
  EXPECT_EQ(ended.exit_code, 0) << output.err;
  ASSERT_TRUE(await(place().release(lease(), core::LeaseEvent::release_succeeded)));
  EXPECT_EQ(ground().leftovers(), std::vector<std::string>{});
}

TEST_P(CommandContract, AnUnknownCommandIsSaidSo) {
  const Command unknown = command({"no-such-command-of-berth", "x"});
  for (int i = 0; i < 2; ++i) {
    const Result<Started> started = await(commands().start(lease(), unknown));
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Errc::command_not_found) << started.error().message;
    EXPECT_TRUE(started.error().message.contains("no-such-command-of-berth"));
  }
  Collected output;
  const Result<Ended> ended = await(commands().follow(lease(), unknown.exec_id, 0, output));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::command_not_found);
}

TEST_P(CommandContract, AMissingWorkingDirectoryIsSaidSo) {
  Command lost = shell("true");
  lost.cwd = workspace().cwd + "/missing";
  const Result<Started> started = await(commands().start(lease(), lost));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Errc::working_directory_missing) << started.error().message;
  const Result<Workspace> realized =
      await(commands().realize(lease(), std::optional{workspace().cwd + "/missing"}));
  ASSERT_FALSE(realized);
  EXPECT_EQ(realized.error().code, Errc::working_directory_missing) << realized.error().message;
}

TEST_P(CommandContract, AWantedFolderThatIsThereIsWorkedIn) {
  Collected output;
  run(shell("mkdir sub; echo inside > sub/file"), output);
  const std::string wanted = workspace().cwd + "/sub";
  const Result<Workspace> realized = await(commands().realize(lease(), std::optional{wanted}));
  ASSERT_TRUE(realized) << realized.error().message;
  EXPECT_EQ(realized->cwd, wanted);
  Command cat = command({"cat", "file"});
  cat.cwd = realized->cwd;
  run(cat, output);
  EXPECT_EQ(output.out, "inside\n");
}

TEST_P(CommandContract, ABadCommandIsRefusedWithItsReason) {
  const auto code_of = [&](const Command& bad) {
    const Result<Started> started = await(commands().start(lease(), bad));
    return started ? Errc::bug : started.error().code;
  };
  Command bad_name = command({"true"});
  bad_name.environment.emplace("NOT-A-NAME", Secret{"x"});
  EXPECT_EQ(code_of(bad_name), Errc::variable_name_invalid);
  EXPECT_EQ(code_of(command({"true", std::string{"a\0b", 3}})), Errc::validation_failed);
  EXPECT_EQ(code_of(command({})), Errc::validation_failed);
  EXPECT_EQ(code_of(command({"true", std::string(1 << 20, 'x')})), Errc::command_too_large);
  Collected output;
  run(shell("echo no program > plain"), output);
  EXPECT_EQ(code_of(command({workspace().cwd + "/plain"})), Errc::command_not_executable);
}

TEST_P(CommandContract, WhatWasNeverStartedIsNotFollowed) {
  Collected output;
  for (int i = 0; i < 2; ++i) {
    const Result<Ended> ended = await(commands().follow(lease(), "never", 0, output));
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Errc::exec_not_found) << ended.error().message;
    const Result<> sent = await(commands().send(lease(), "never", std::string{"x"}));
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, Errc::exec_not_found) << sent.error().message;
    EXPECT_TRUE(await(commands().cancel(lease(), "never", 0)));
    run(command({"true"}), output);  // the second time with a keeper
  }
}

TEST_P(CommandContract, ATakersErrorEndsTheFollowingAndNotTheCommand) {
  class Refusing final : public OutputTaker {
   public:
    Task<> take(std::span<const OutputPiece> /*pieces*/) override {
      co_return fail(Errc::log_unavailable, "no room");
    }
  };
  const Command chatty = shell("for i in $(seq 100); do echo $i; sleep 0.005; done");
  start(chatty);
  Refusing refusing;
  const Result<Ended> refused = await(commands().follow(lease(), chatty.exec_id, 0, refusing));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::log_unavailable);
  Collected output;
  EXPECT_EQ(follow(chatty.exec_id, output).exit_code, 0);
  EXPECT_TRUE(output.out.ends_with("100\n"));
}

TEST_P(CommandContract, BinaryOutputArrivesByteForByte) {
  Collected output;
  run(shell("for i in $(seq 0 255); do printf \"\\\\$(printf %03o $i)\"; done"), output);
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(output.out, all);
}

TEST_P(CommandContract, ALineOfTwentyMegabytesArrivesWhole) {
  Collected output;
  EXPECT_EQ(run(shell("head -c 20000000 /dev/zero | tr '\\0' 'z'; echo"), output).exit_code, 0);
  ASSERT_EQ(output.out.size(), 20'000'001U);
  EXPECT_EQ(output.out.find_first_not_of('z'), 20'000'000U);
}

TEST_P(CommandContract, TwoHundredMegabytesArriveWhole) {
  Collected output;
  output.keeps_bytes = false;
  EXPECT_EQ(run(shell("head -c 200000000 /dev/zero"), output).exit_code, 0);
  EXPECT_EQ(output.bytes, 200'000'000U);
}

TEST_P(CommandContract, OutputPastTheLimitIsCountedAndSaidInANote) {
  Command loud = shell("head -c 300000 /dev/zero");
  loud.output_bytes_max = 100'000;
  Collected output;
  const Ended ended = run(loud, output);
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(output.out.size(), 100'000U);
  EXPECT_EQ(ended.bytes_over_limit, 200'000);
  EXPECT_TRUE(output.notes.contains("100000")) << output.notes;
}

TEST_P(CommandContract, CommandsOfOneLeaseRunSideBySide) {
  Command reader = shell("cat fifo");
  Collected output;
  run(command({"mkfifo", "fifo"}), output);
  start(reader);
  EXPECT_EQ(run(shell("echo through > fifo"), output).exit_code, 0);
  Collected read;
  EXPECT_EQ(follow(reader.exec_id, read).exit_code, 0);
  EXPECT_EQ(read.out, "through\n");
}

}  // namespace berth::place_test
