#include "integration/sandbox_fixture.hpp"

#include <signal.h>

// A command in a sandbox is held like any other.
namespace berth::keeper_test {
namespace {

using keeper::Ended;
using keeper::Exec;
using keeper::Outcome;

class SandboxCommand : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (!IsSkipped()) confine();
  }
};
INSTANTIATE_TEST_SUITE_P(By, SandboxCommand, testing::Values(Maker::root, Maker::user),
                         [](const auto& by) {
                           return by.param == Maker::root ? "Root" : "OrdinaryUser";
                         });

TEST_P(SandboxCommand, HasItsOutputItsErrorsAndItsCodeRecorded) {
  const Exec exec = inside("echo out; echo err >&2; exit 7");
  const Ended ended = run(exec);
  EXPECT_EQ(ended.outcome, Outcome::exited);
  EXPECT_EQ(ended.code, 7);
  EXPECT_EQ(output_of(exec.exec_id).out, "out\n");
  EXPECT_EQ(output_of(exec.exec_id).err, "err\n");
}

TEST_P(SandboxCommand, ReadsItsStdin) {
  Exec exec = inside("read line; echo got $line; cat");
  exec.stdin_kind = keeper::Stdin::pipe;
  ASSERT_TRUE(client().exec(exec));
  ASSERT_TRUE(client().write(exec.exec_id, "first\nrest"));
  ASSERT_TRUE(client().close_stdin(exec.exec_id));
  ASSERT_TRUE(client().wait(exec.exec_id));
  EXPECT_EQ(output_of(exec.exec_id).out, "got first\nrest");
}

TEST_P(SandboxCommand, HasATerminalOfTheSandboxItself) {
  Exec exec = inside("tty; stty size; echo by name > $(tty); echo by dev > /dev/tty");
  exec.rows = 33;
  exec.columns = 44;
  EXPECT_EQ(run(exec).code, 0);
  EXPECT_EQ(output_of(exec.exec_id).out, "/dev/pts/0\r\n33 44\r\nby name\r\nby dev\r\n");
}

TEST_P(SandboxCommand, IsToldOfANewSizeOfItsTerminal) {
  Exec exec = inside("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done");
  exec.rows = 10;
  exec.columns = 20;
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\r\n");
  ASSERT_TRUE(client().resize(exec.exec_id, 50, 60));
  ASSERT_TRUE(client().wait(exec.exec_id));
  EXPECT_EQ(output_of(exec.exec_id).out, "ready\r\n50 60\r\n");
}

TEST_P(SandboxCommand, TakesSignals) {
  const Exec exec = inside("trap 'exit 5' USR1; echo ready; while :; do sleep 0.05; done");
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\n");
  ASSERT_TRUE(client().signal(exec.exec_id, SIGUSR1));
  const auto ended = client().wait(exec.exec_id);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 5);
}

TEST_P(SandboxCommand, IsCancelledWithAllThatItLeft) {
  const Exec exec = inside(
      "trap '' TERM; setsid sh -c \"trap '' TERM; while :; do sleep 1; done\" & "
      "echo ready; while :; do sleep 1; done");
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\n");
  const auto ended = client().cancel(exec.exec_id, 50ms);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::stopped);
  EXPECT_EQ(ended->left_behind, 0U);
  // What remains is pid 1, perhaps a spare warden, and the processes that check.
  EXPECT_EQ(said("cat /proc/[0-9]*/comm | grep -c sleep || true"), "0\n");
}

TEST_P(SandboxCommand, PastItsDeadlineIsTimedOut) {
  Exec exec = inside("sleep 100");
  exec.deadline_ms = 50;
  EXPECT_EQ(run(exec).outcome, Outcome::timed_out);
}

TEST_P(SandboxCommand, RunsBesideManyOthers) {
  std::vector<Exec> execs;
  for (int i = 0; i < 24; ++i) {
    execs.push_back(inside("echo " + std::to_string(i) + "; sleep 0.1"));
    ASSERT_TRUE(client().exec(execs.back()));
  }
  for (std::size_t i = 0; i < execs.size(); ++i) {
    const auto ended = client().wait(execs[i].exec_id);
    ASSERT_TRUE(ended) << ended.error().message;
    EXPECT_EQ(ended->code, 0);
    EXPECT_EQ(output_of(execs[i].exec_id).out, std::to_string(i) + "\n");
  }
}

TEST_P(SandboxCommand, CannotChangeTheLimitsOfPidOne) {
  EXPECT_EQ(said("prlimit --pid 1 --nofile=0:0 2>/dev/null || echo refused"), "refused\n");
  EXPECT_EQ(said("prlimit --pid $$ --nofile=64:64 && ulimit -n"), "64\n") << "but its own";
}

TEST_P(SandboxCommand, CannotChangeHowPidOneIsScheduled) {
  const auto is_refused = [&](const std::string& command) {
    return said(command + " >/dev/null 2>&1 || echo refused") == "refused\n";
  };
  for (const char* tool :
       {"renice -n 19 -p 1", "renice -n 19 -g 1", "renice -n 19 -u $(id -u)", "chrt --idle -p 0 1",
        "taskset -p ffffffffffffffff 1", "ionice -c 3 -p 1"}) {
    EXPECT_TRUE(is_refused(tool)) << tool;
  }
  EXPECT_EQ(said("renice -n 19 -p $$ >/dev/null && nice"), "19\n") << "but its own";
  EXPECT_EQ(said("renice -n 19 -g 0 >/dev/null && nice"), "19\n") << "and that of its group";
  EXPECT_EQ(said("taskset -p ffffffffffffffff $$ >/dev/null && chrt --idle -p 0 $$ && "
                 "ionice -c 3 -p $$ && nice -n 19 echo all"),
            "all\n");
}

TEST_P(SandboxCommand, IsNotScheduledAsTheOneBeforeHadItsWarden) {
  const std::string look = "nice; chrt -p $$ | cut -d: -f2";
  const std::string usual = said(look);
  EXPECT_EQ(said("echo second"), "second\n");  // from now on wardens are kept for the next command
  EXPECT_EQ(said("renice -n 19 -p $PPID >/dev/null && chrt --idle -p 0 $PPID && echo slowed"),
            "slowed\n");
  EXPECT_EQ(said(look), usual);
  EXPECT_EQ(said(look), usual) << "nor any later one";
}

// When memory runs out the kernel ends the process with the highest score, however small it is.
TEST_P(SandboxCommand, GoesBeforePidOneWhenMemoryRunsOut) {
  const auto preference = [&](const std::string& whose) {
    return std::stoi(said("cat /proc/" + whose + "/oom_score_adj"));
  };
  EXPECT_LT(preference("1"), preference("self"));
  EXPECT_LT(preference("1"), preference("self")) << "the second too";
}

TEST_P(SandboxCommand, BesideAnotherHasNoPartInItsEnd) {
  const std::string daemon = "(setsid sleep 100 </dev/null >/dev/null 2>&1 &); ";
  const Exec first = inside(daemon + "echo ready; read line < /tmp/first; echo over");
  const Exec second = inside(daemon + "echo ready; read line < /tmp/second; echo over");
  EXPECT_EQ(said("mkfifo -m 666 /tmp/first /tmp/second; echo made"), "made\n");
  ASSERT_TRUE(client().exec(first));
  wait_for_output(first.exec_id, "ready\n");
  ASSERT_TRUE(client().exec(second));
  const std::string sleepers = "cat /proc/[0-9]*/comm | grep -c sleep || true";
  const auto has_sleepers = [&](const std::string& count) {
    return eventually([&] { return said(sleepers) == count + "\n"; });
  };
  EXPECT_TRUE(has_sleepers("2"));

  EXPECT_EQ(said("echo > /tmp/first; echo told"), "told\n");
  const auto ended = client().wait(first.exec_id);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->left_behind, 0U);
  EXPECT_TRUE(has_sleepers("1")) << "the other's daemon is not the first one's";
  EXPECT_EQ(output_of(first.exec_id).out, "ready\nover\n");

  EXPECT_EQ(said("echo > /tmp/second; echo told"), "told\n");
  ASSERT_TRUE(client().wait(second.exec_id));
  EXPECT_TRUE(has_sleepers("0"));
  EXPECT_EQ(output_of(second.exec_id).out, "ready\nover\n");
}

TEST_P(SandboxCommand, LingersWhileOthersComeAndGo) {
  const Exec waiting = inside("(sleep 0.2; echo late) & exec sleep 0.05");
  Exec lingering = waiting;
  lingering.leftovers = keeper::Leftovers::linger;
  ASSERT_TRUE(client().exec(lingering));
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(said("echo " + std::to_string(i)), std::to_string(i) + "\n");
  wait_for_output(lingering.exec_id, "late\n");
  EXPECT_TRUE(eventually([&] { return client().list()->live.empty(); }));
}

TEST_P(SandboxCommand, MayHaveAnEnvironmentThatIsTooLongForAPacket) {
  Exec exec = inside("echo ${#A}${#B}${#C}");
  for (const char* name : {"A=", "B=", "C="}) {
    exec.environment.push_back(name + std::string(100'000, 'x'));
  }
  EXPECT_EQ(run(exec).code, 0);
  EXPECT_EQ(output_of(exec.exec_id).out, "100000100000100000\n");
}

TEST_P(SandboxCommand, ThatIsNotInsideIsNotFound) {
  Exec exec = command({root() + "/start"});  // it exists, but outside
  exec.cwd = "/";
  const auto ended = client().run(exec);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::command_not_found);
}

TEST_P(SandboxCommand, WithoutItsInterpreterIsExplainedByALookInside) {
  said("printf '#!/nowhere\\n' > /tmp/script; chmod +x /tmp/script");
  Exec exec = command({"/tmp/script"});
  exec.cwd = "/";
  const auto ended = client().run(exec);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::command_not_executable) << ended.error().message;
}

TEST_P(SandboxCommand, NeedsADirectoryThatIsInside) {
  Exec exec = inside("true");
  exec.cwd = root();
  const auto ended = client().run(exec);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::working_directory_missing);
}

}  // namespace
}  // namespace berth::keeper_test
