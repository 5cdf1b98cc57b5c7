#include "integration/keeper_fixture.hpp"

#include "base/files.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

// What a command gets, and what is reported about one that cannot be started.
namespace berth::keeper_test {
namespace {

using keeper::Ended;
using keeper::Exec;
using keeper::Outcome;

class KeeperCommand : public KeeperTest {};

TEST_F(KeeperCommand, EndsWithItsExitStatus) {
  const Ended zero = run(command({"true"}));
  EXPECT_EQ(zero.outcome, Outcome::exited);
  EXPECT_EQ(zero.code, 0);
  const Ended seven = run(shell("exit 7"));
  EXPECT_EQ(seven.outcome, Outcome::exited);
  EXPECT_EQ(seven.code, 7);
  EXPECT_LE(seven.started_us, seven.ended_us);
}

TEST_F(KeeperCommand, EndsWithTheSignalThatKilledIt) {
  const Ended ended = run(shell("kill -USR1 $$"));
  EXPECT_EQ(ended.outcome, Outcome::signaled);
  EXPECT_EQ(ended.signal, SIGUSR1);
}

TEST_F(KeeperCommand, HasTheEnvironmentItWasGivenAndNoOther) {
  Exec exec = command({"/usr/bin/env"});
  exec.environment = {"ONE=1", "TWO=a=b", "EMPTY="};
  run(exec);
  EXPECT_EQ(output_of(exec.exec_id).out, "ONE=1\nTWO=a=b\nEMPTY=\n");
}

TEST_F(KeeperCommand, RunsInItsDirectory) {
  const Exec exec = command({"pwd"});
  run(exec);
  EXPECT_EQ(output_of(exec.exec_id).out, root() + "\n");
}

TEST_F(KeeperCommand, HasNoDescriptorBesidesItsThree) {
  const Exec first = shell("exec sleep 100");
  ASSERT_TRUE(client().exec(first));
  Exec exec = command({"ls", "/proc/self/fd"});
  exec.stdin_kind = keeper::Stdin::pipe;
  const auto ended = client().run(exec);
  ASSERT_TRUE(ended);
  EXPECT_EQ(output_of(exec.exec_id).out, "0\n1\n2\n3\n");  // 3 is the listing itself
}

TEST_F(KeeperCommand, StartsWithDefaultSignalsAndAnEmptyMask) {
  const Exec exec = shell("grep -E 'Sig(Blk|Ign)' /proc/self/status");
  run(exec);
  EXPECT_EQ(output_of(exec.exec_id).out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(KeeperCommand, TakesArgumentsOfOneMegabyte) {
  Exec exec = command({"sh", "-c", "echo $#", "sh"});
  for (int i = 0; i < 10; ++i) exec.argv.emplace_back(100'000, 'x');
  run(exec);
  EXPECT_EQ(output_of(exec.exec_id).out, "10\n");
}

TEST_F(KeeperCommand, NothingOfACommandIsInTheArgumentsOfTheKeeper) {
  Exec exec = shell("sleep 100 # visible-secret");
  exec.environment.emplace_back("TOKEN=visible-secret");
  ASSERT_TRUE(client().exec(exec));
  const auto words = read_file("/proc/" + std::to_string(keeper_pid()) + "/cmdline", 4096);
  ASSERT_TRUE(words);
  EXPECT_EQ(words->find("visible-secret"), std::string::npos);
}

struct BadCommand {
  const char* what;
  std::function<void(Exec&, const std::string& root)> spoil;
  Errc code;
  const char* says;
};

TEST_F(KeeperCommand, ThatCannotBeStartedIsRefusedWithACodeASentenceAndARecord) {
  std::ofstream{root() + "/plain"} << "echo\n";
  std::ofstream{root() + "/orphan"} << "#!/no/such/interpreter\n";
  ::chmod((root() + "/orphan").c_str(), 0755);
  std::ofstream{root() + "/noformat"} << "\x7f"
                                         "ELF no program\n";
  ::chmod((root() + "/noformat").c_str(), 0755);
  const std::vector<BadCommand> cases{
      {"unknown command", [](Exec& e, auto&) { e.argv = {"no-such-command"}; },
       Errc::command_not_found, "/usr/bin:/bin"},
      {"unknown path", [](Exec& e, auto&) { e.argv = {"./nothing"}; }, Errc::command_not_found,
       "./nothing"},
      {"missing directory", [](Exec& e, auto&) { e.cwd = "/no/such/place"; },
       Errc::working_directory_missing, "/no/such/place"},
      {"directory that is a file", [](Exec& e, auto& root) { e.cwd = root + "/plain"; },
       Errc::working_directory_missing, "plain"},
      {"not executable", [](Exec& e, auto&) { e.argv = {"./plain"}; }, Errc::command_not_executable,
       "./plain"},
      {"a directory", [](Exec& e, auto&) { e.argv = {"/tmp"}; }, Errc::command_not_executable,
       "/tmp"},
      {"no interpreter", [](Exec& e, auto&) { e.argv = {"./orphan"}; },
       Errc::command_not_executable, "interpreter"},
      {"no format", [](Exec& e, auto&) { e.argv = {"./noformat"}; }, Errc::command_not_executable,
       "noformat"},
  };
  for (const BadCommand& bad : cases) {
    Exec exec = command({"true"});
    bad.spoil(exec, root());
    const auto started = client().exec(exec);
    ASSERT_FALSE(started) << bad.what;
    EXPECT_EQ(started.error().code, bad.code) << bad.what << ": " << started.error().message;
    EXPECT_NE(started.error().message.find(bad.says), std::string::npos)
        << bad.what << ": " << started.error().message;
    EXPECT_NE(started.error().remedy, "") << bad.what;
    const auto ended = keeper::read_exit(folder(), exec.exec_id);
    ASSERT_TRUE(ended) << bad.what;
    EXPECT_EQ(ended->outcome, Outcome::failed_to_start) << bad.what;
    EXPECT_EQ(ended->error_code, name_of(bad.code)) << bad.what;
    EXPECT_NE(ended->failed_errno, 0) << bad.what;
  }
}

TEST_F(KeeperCommand, ThatIsNoCommandLeavesNothing) {
  const std::vector<BadCommand> cases{
      {"no id", [](Exec& e, auto&) { e.exec_id = ""; }, Errc::validation_failed, "id"},
      {"path as id", [](Exec& e, auto&) { e.exec_id = "../x"; }, Errc::validation_failed, "id"},
      {"no argv", [](Exec& e, auto&) { e.argv = {}; }, Errc::validation_failed, "no command"},
      {"relative directory", [](Exec& e, auto&) { e.cwd = "here"; }, Errc::validation_failed,
       "here"},
      {"NUL in argv", [](Exec& e, auto&) { e.argv.emplace_back("a\0b", 3); },
       Errc::validation_failed, "NUL"},
      {"no name", [](Exec& e, auto&) { e.environment = {"=x"}; }, Errc::variable_name_invalid, ""},
      {"no value", [](Exec& e, auto&) { e.environment = {"NAME"}; }, Errc::variable_name_invalid,
       "NAME"},
      {"digit first", [](Exec& e, auto&) { e.environment = {"1A=x"}; }, Errc::variable_name_invalid,
       "1A"},
      {"space", [](Exec& e, auto&) { e.environment = {"A B=x"}; }, Errc::variable_name_invalid,
       "A B"},
      {"twice", [](Exec& e, auto&) { e.environment = {"A=1", "A=2"}; }, Errc::variable_name_invalid,
       "twice"},
      {"long argument", [](Exec& e, auto&) { e.argv.emplace_back(200'000, 'x'); },
       Errc::command_too_large, "200000"},
      {"many arguments",
       [](Exec& e, auto&) { e.argv.insert(e.argv.end(), 30, std::string(100'000, 'x')); },
       Errc::command_too_large, "limit"},
  };
  for (const BadCommand& bad : cases) {
    Exec exec = command({"true"});
    bad.spoil(exec, root());
    const auto started = client().exec(exec);
    ASSERT_FALSE(started) << bad.what;
    EXPECT_EQ(started.error().code, bad.code) << bad.what << ": " << started.error().message;
    EXPECT_NE(started.error().message.find(bad.says), std::string::npos) << bad.what;
    EXPECT_FALSE(keeper::find_exec(folder(), exec.exec_id).value()) << bad.what;
  }
}

TEST_F(KeeperCommand, RepeatedWithItsIdAnswersTheSameAndRunsOnce) {
  const Exec exec = shell("echo x >> count; read line");
  Exec open = exec;
  open.stdin_kind = keeper::Stdin::pipe;
  const auto first = client().exec(open);
  const auto again = client().exec(open);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->pid, again->pid);
  ASSERT_TRUE(client().close_stdin(open.exec_id));
  ASSERT_TRUE(client().wait(open.exec_id));
  const auto after_end = client().exec(open);
  ASSERT_TRUE(after_end);
  EXPECT_EQ(after_end->pid, first->pid);
  EXPECT_EQ(read_file(root() + "/count", 64).value_or(""), "x\n");

  Exec other = open;
  other.argv.emplace_back("different");
  const auto refused = client().exec(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::exec_id_reused);
}

TEST_F(KeeperCommand, ThatFailedToStartFailsTheSameWhenRepeated) {
  const Exec exec = command({"no-such-command"});
  const auto first = client().exec(exec);
  const auto again = client().exec(exec);
  ASSERT_FALSE(first || again);
  EXPECT_EQ(first.error(), again.error());
}

TEST_F(KeeperCommand, ReadsTheBytesItWasGivenAndThenTheEnd) {
  Exec exec = command({"cat"});
  exec.stdin_kind = keeper::Stdin::bytes;
  exec.stdin_bytes = std::string("a\0b\xff\n", 5) + std::string(700'000, 'z');
  const Ended ended = run(exec);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(output_of(exec.exec_id).out, exec.stdin_bytes);
}

TEST_F(KeeperCommand, WithoutStdinReadsItsEndAtOnce) {
  EXPECT_EQ(run(command({"cat"})).code, 0);
}

TEST_F(KeeperCommand, IsWrittenToUntilItsStdinIsClosed) {
  Exec exec = shell("read a; echo got $a; read b; echo got $b; cat >/dev/null; echo end");
  exec.stdin_kind = keeper::Stdin::pipe;
  ASSERT_TRUE(client().exec(exec));
  ASSERT_TRUE(client().write(exec.exec_id, "one\n"));
  wait_for_output(exec.exec_id, "got one\n");
  ASSERT_TRUE(client().write(exec.exec_id, "two\n"));
  wait_for_output(exec.exec_id, "got two\n");
  ASSERT_TRUE(client().close_stdin(exec.exec_id));
  ASSERT_TRUE(client().wait(exec.exec_id));
  EXPECT_EQ(output_of(exec.exec_id).out, "got one\ngot two\nend\n");
}

TEST_F(KeeperCommand, ThatReadsNothingIsNotFedMoreThanTheLimit) {
  Exec exec = command({"sleep", "100"});
  exec.stdin_kind = keeper::Stdin::pipe;
  ASSERT_TRUE(client().exec(exec));
  const std::string piece(keeper::limits::stdin_bytes / 2, 'x');
  for (int i = 0; i < 3; ++i) client().send(keeper::Write{exec.exec_id, piece});
  const auto over = client().write(exec.exec_id, piece);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Errc::overloaded);
}

TEST_F(KeeperCommand, ThatHasEndedTakesNoInput) {
  Exec exec = command({"true"});
  exec.stdin_kind = keeper::Stdin::pipe;
  run(exec);
  const auto late = client().write(exec.exec_id, "x");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::exec_not_found);
}

TEST_F(KeeperCommand, HasATerminalOfTheGivenSizeThatCanBeResized) {
  Exec exec = shell("test -t 0 && test -t 1 && test -t 2 && stty size; read x; stty size");
  exec.rows = 30;
  exec.columns = 100;
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "30 100\r\n");
  ASSERT_TRUE(client().resize(exec.exec_id, 40, 120));
  ASSERT_TRUE(client().write(exec.exec_id, "\n"));
  ASSERT_TRUE(client().wait(exec.exec_id));
  const std::string seen = output_of(exec.exec_id).out;
  EXPECT_TRUE(seen.ends_with("40 120\r\n")) << seen;
}

TEST_F(KeeperCommand, OnATerminalReadsTheEndWhenStdinIsClosed) {
  Exec exec = shell("cat; echo over");
  exec.rows = exec.columns = 50;
  ASSERT_TRUE(client().exec(exec));
  ASSERT_TRUE(client().close_stdin(exec.exec_id));
  const auto ended = client().wait(exec.exec_id);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 0);
  EXPECT_TRUE(output_of(exec.exec_id).out.ends_with("over\r\n"));
}

TEST_F(KeeperCommand, GetsSignalsWithItsWholeGroup) {
  const Exec exec =
      shell("trap 'echo caught; exit 3' USR1; echo ready; while :; do sleep 0.01; done");
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\n");
  ASSERT_TRUE(client().signal(exec.exec_id, SIGUSR1));
  const auto ended = client().wait(exec.exec_id);
  ASSERT_TRUE(ended);
  EXPECT_EQ(output_of(exec.exec_id).out, "ready\ncaught\n");
  const auto no_signal = client().signal(exec.exec_id, 900);
  EXPECT_FALSE(no_signal);
}

TEST_F(KeeperCommand, ItsResourcesAreCounted) {
  const Ended ended = run(shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
  EXPECT_GT(ended.user_us + ended.system_us, 1000U);
  EXPECT_GT(ended.resident_bytes_max, 100'000U);
}

TEST_F(KeeperCommand, IsNotCountedWhatFormerCommandsUsed) {
  run(command({"true"}));
  const Ended large = run(shell("x=$(head -c 50000000 /dev/zero | tr '\\0' a); : ${#x}"));
  EXPECT_GT(large.resident_bytes_max, 50'000'000U);
  const Ended small = run(command({"true"}));
  EXPECT_LT(small.resident_bytes_max, 20'000'000U);
  EXPECT_LT(small.user_us + small.system_us, large.user_us + large.system_us);
}

TEST_F(KeeperCommand, SeesNothingOfTheOneBeforeIt) {
  for (int i = 0; i < 3; ++i) {
    Exec exec = shell("ulimit -n; pwd; echo ${LEFT-none}; umask; ls /proc/self/fd; kill -0 -$$");
    const std::string said = "/\nnone\n0022\n0\n1\n2\n3\n";
    exec.cwd = "/";
    EXPECT_EQ(run(exec).code, 0);
    const std::string out = output_of(exec.exec_id).out;
    EXPECT_TRUE(out.ends_with(said)) << out;
    Exec other = shell("LEFT=1; export LEFT; umask 0; ulimit -n 100; exec 9</dev/null; kill -9 $$");
    EXPECT_EQ(run(other).signal, SIGKILL);
  }
}

TEST_F(KeeperCommand, IsNotTouchedByOrdersThatCameTooLateForTheOneBeforeIt) {
  for (int i = 0; i < 5; ++i) {
    const Exec exec = shell("sleep 100 & exec sleep 100");
    ASSERT_TRUE(client().exec(exec));
    const auto cancelled = client().cancel(exec.exec_id, 0ms);
    ASSERT_TRUE(cancelled);
    EXPECT_EQ(cancelled->outcome, Outcome::stopped);
    EXPECT_EQ(run(shell("exit 3")).code, 3);
  }
}

TEST_F(KeeperCommand, ItsTreeIsCountedWhileItRuns) {
  const Exec exec = shell("sleep 100 & sleep 100 & echo ready; wait");
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\n");
  const auto usage = client().stats(exec.exec_id);
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->processes, 3U);
  EXPECT_GT(usage->resident_bytes, 100'000U);
  const auto listing = client().list();
  ASSERT_TRUE(listing);
  ASSERT_EQ(listing->live.size(), 1U);
  EXPECT_EQ(listing->live[0].exec_id, exec.exec_id);
}

}  // namespace
}  // namespace berth::keeper_test
