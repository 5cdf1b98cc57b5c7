#include "integration/keeper_fixture.hpp"

#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

// Nothing of a command is left, whether it ended or was ended.
namespace berth::keeper_test {
namespace {

using keeper::Ended;
using keeper::Exec;
using keeper::Outcome;

class KeeperTree : public KeeperTest {
 protected:
  // Leaves its session and its parent, and prints its pid.
  static std::string daemon(const std::string& body) {
    return "setsid sh -c '(sh -c \"echo \\$\\$; " + body + "\" &)'; ";
  }
};

TEST_F(KeeperTree, PastItsDeadlineIsTimedOut) {
  Exec exec = shell("echo $$; exec sleep 100");
  exec.deadline_ms = 50;
  const Ended ended = run(exec);
  EXPECT_EQ(ended.outcome, Outcome::timed_out);
  EXPECT_EQ(ended.signal, SIGTERM);
  EXPECT_FALSE(is_running(ended.pid));
}

TEST_F(KeeperTree, ThatEndsItselfOnSigtermIsStillTimedOutWithItsCode) {
  Exec exec = shell("trap 'exit 9' TERM; while :; do sleep 0.01; done");
  exec.deadline_ms = 200;
  exec.grace_ms = 20'000;
  const Ended ended = run(exec);
  EXPECT_EQ(ended.outcome, Outcome::timed_out);
  EXPECT_EQ(ended.code, 9);
}

TEST_F(KeeperTree, ThatIgnoresSigtermIsKilledAfterTheGrace) {
  Exec exec = shell("trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done'");
  exec.deadline_ms = 300;
  exec.grace_ms = 100;
  const Ended ended = run(exec);
  EXPECT_EQ(ended.outcome, Outcome::timed_out);
  EXPECT_EQ(ended.signal, SIGKILL);
  EXPECT_FALSE(is_running(pid_written(exec.exec_id)));
}

TEST_F(KeeperTree, ThatIsStoppedIsEndedAllTheSame) {
  const Exec exec = shell("echo $$; kill -STOP $$");
  ASSERT_TRUE(client().exec(exec));
  const pid_t pid = pid_written(exec.exec_id);
  ASSERT_TRUE(eventually([&] {
    const auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
    return text && text->find(") T ") != std::string::npos;
  }));
  const auto ended = client().cancel(exec.exec_id, 10s);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, Outcome::stopped);
  EXPECT_EQ(ended->signal, SIGTERM);
}

TEST_F(KeeperTree, ADaemonThatForkedTwiceInASessionOfItsOwnDiesWithItsCommand) {
  const Exec exec = shell(daemon("exec sleep 100") + "sleep 0.2; echo end >&2");
  const Ended ended = run(exec);
  EXPECT_EQ(ended.outcome, Outcome::exited);
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.left_behind, 0U);
  EXPECT_FALSE(is_running(pid_written(exec.exec_id)));
}

TEST_F(KeeperTree, ADaemonThatIgnoresSigtermDiesToo) {
  const Exec exec = shell(daemon("trap \\\"\\\" TERM; while :; do sleep 1; done") + "sleep 0.2");
  const Ended ended = run(exec);
  EXPECT_EQ(ended.outcome, Outcome::exited);
  EXPECT_FALSE(is_running(pid_written(exec.exec_id)));
}

TEST_F(KeeperTree, OfOneCommandDiesWithoutTouchingThatOfAnother) {
  const Exec other = shell(daemon("exec sleep 100") + "exec sleep 100");
  ASSERT_TRUE(client().exec(other));
  const pid_t bystander = pid_written(other.exec_id);
  const Exec exec = shell(daemon("exec sleep 100") + "exec sleep 100");
  ASSERT_TRUE(client().exec(exec));
  const pid_t victim = pid_written(exec.exec_id);
  const auto ended = client().cancel(exec.exec_id, 0ms);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, Outcome::stopped);
  EXPECT_FALSE(is_running(victim));
  EXPECT_TRUE(is_running(bystander));
}

TEST_F(KeeperTree, MayLingerWhenTheCommandAsksForIt) {
  Exec exec = shell("sleep 100 & echo $!");
  exec.leftovers = keeper::Leftovers::linger;
  const Ended ended = run(exec);
  EXPECT_EQ(ended.outcome, Outcome::exited);
  const pid_t lingering = pid_written(exec.exec_id);
  EXPECT_TRUE(is_running(lingering));
  ASSERT_TRUE(client().stop(0ms));
  EXPECT_FALSE(is_running(lingering));
  EXPECT_EQ(keeper::read_exit(folder(), exec.exec_id)->outcome, Outcome::exited);
}

TEST_F(KeeperTree, ThatLingersDiesWithTheKeeperAndTheEndOfItsCommandStays) {
  Exec exec = shell("sleep 100 & echo $!");
  exec.leftovers = keeper::Leftovers::linger;
  ASSERT_EQ(run(exec).outcome, Outcome::exited);
  const pid_t lingering = pid_written(exec.exec_id);
  const auto stat = keeper::process_stat(lingering);
  ASSERT_TRUE(stat);
  ::kill(keeper_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !is_running(lingering); }));
  // Its warden, which would record that the command was lost.
  EXPECT_TRUE(eventually([&] { return !is_running(stat->parent); }));
  EXPECT_EQ(keeper::read_exit(folder(), exec.exec_id)->outcome, Outcome::exited);
}

// Bounded twice: by a process limit for its own user, and by time. The pauses leave the machine to
// the other tests.
TEST_F(KeeperTree, AForkBombIsKilledToTheLast) {
  if (::geteuid() != 0) GTEST_SKIP() << "the limit of processes is that of a user of its own";
  std::ofstream{root() + "/bomb"} << "import os, resource, sys, time\n"
                                     "resource.setrlimit(resource.RLIMIT_NPROC, (80, 80))\n"
                                     "os.setuid(54321)\n"
                                     "end = time.monotonic() + 60\n"
                                     "print(os.getpid(), flush=True)\n"
                                     "while time.monotonic() < end:\n"
                                     "    try:\n"
                                     "        if os.fork() == 0:\n"
                                     "            os.setsid()\n"
                                     "        time.sleep(0.002)\n"
                                     "    except OSError:\n"
                                     "        time.sleep(0.002)\n";
  std::filesystem::permissions(
      root(), std::filesystem::perms::others_read | std::filesystem::perms::others_exec,
      std::filesystem::perm_options::add);
  Exec exec = command({"python3", root() + "/bomb"});
  ASSERT_TRUE(client().exec(exec));
  ASSERT_TRUE(eventually(
      [&] {
        const auto usage = client().stats(exec.exec_id);
        return usage && usage->processes >= 60;
      },
      30s));
  const auto ended = client().cancel(exec.exec_id, 0ms);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::stopped);
  EXPECT_EQ(ended->left_behind, 0U);
}

TEST_F(KeeperTree, DiesWhenTheKeeperIsKilled) {
  const Exec exec = shell(daemon("exec sleep 100") + "exec sleep 100");
  const auto started = client().exec(exec);
  ASSERT_TRUE(started);
  const pid_t escaped = pid_written(exec.exec_id);
  ::kill(keeper_pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !is_running(escaped) && !is_running(started->pid); }));
  ASSERT_TRUE(eventually([&] { return keeper::read_exit(folder(), exec.exec_id).has_value(); }));
  EXPECT_EQ(keeper::read_exit(folder(), exec.exec_id)->outcome, Outcome::lost);
  ASSERT_TRUE(wait_for_keeper());
  const auto found = keeper::find_keepers(root());
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().life, keeper::Life::dead);
}

TEST_F(KeeperTree, DiesWhenItsWardenIsKilledAndTheKeeperLivesOn) {
  const Exec exec = shell("echo $PPID; " + daemon("exec sleep 100") + "exec sleep 100");
  ASSERT_TRUE(client().exec(exec));
  const pid_t warden = pid_written(exec.exec_id, 0);
  const pid_t escaped = pid_written(exec.exec_id, 1);
  ::kill(warden, SIGKILL);
  const auto ended = client().wait(exec.exec_id);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->outcome, Outcome::lost);
  EXPECT_TRUE(eventually([&] { return !is_running(escaped) && !is_running(ended->pid); }));
  EXPECT_EQ(run(command({"true"})).code, 0);
}

TEST_F(KeeperTree, LeavesNoZombie) {
  for (int i = 0; i < 5; ++i) run(shell("(true &); true"));
  // A spare warden may be alive.
  ASSERT_TRUE(eventually([&] {
    const std::vector<pid_t> children = keeper::descendants_of(keeper_pid());
    return children.size() <= 1 && std::ranges::all_of(children, is_running);
  }));
}

TEST_F(KeeperTree, InACgroupIsKilledByIt) {
  const std::string parent = "/sys/fs/cgroup/unified";
  const std::string group = parent + "/berth-keeper-test-" + std::to_string(::getpid());
  std::error_code failed;
  if (!std::filesystem::exists(parent + "/cgroup.procs") ||
      !std::filesystem::create_directory(group, failed)) {
    GTEST_SKIP() << "no cgroup can be made below " << parent;
  }
  Exec exec = shell("cat /proc/self/cgroup >&2; " + daemon("exec sleep 100") + "exec sleep 100");
  exec.cgroup_dir = group;
  const auto started = client().exec(exec);
  ASSERT_TRUE(started) << started.error().message;
  const pid_t escaped = pid_written(exec.exec_id);
  ASSERT_TRUE(client().cancel(exec.exec_id, 0ms));
  EXPECT_NE(output_of(exec.exec_id).err.find("berth-keeper-test"), std::string::npos);
  EXPECT_FALSE(is_running(escaped));
  EXPECT_TRUE(eventually([&] { return ::rmdir(group.c_str()) == 0; }));
}

}  // namespace
}  // namespace berth::keeper_test
