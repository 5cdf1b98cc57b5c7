#include "keeper/holder/process_tree.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "security/host_bait.hpp"
#include "security/place.hpp"
#include "security/remains.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace berth::security_test {

namespace {

using keeper::sandbox::Identity;
using testing::HasSubstr;
using testing::Not;

class SandboxTest : public testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    const std::string reason = reason_against(GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
    sandbox_ = another();
  }

  std::unique_ptr<Sandbox> another() {
    auto made = Sandbox::make({.place = GetParam(),
                               .plan = plan_of(GetParam(), hostile_.path()),
                               .environment = {bait_.secret()}});
    if (made) return *std::move(made);
    unavailable_ = made.error().message + " " + made.error().remedy;
    if (made.error().code != Errc::sandbox_unavailable) ADD_FAILURE() << unavailable_;
    return nullptr;
  }

  Sandbox& sandbox() { return *sandbox_; }
  const std::string& marker() const { return bait_.marker(); }
  bool is_made() const { return sandbox_ != nullptr; }
  const std::string& unavailable() const { return unavailable_; }

  static std::string host_network() {
    struct stat found = {};
    ::stat("/proc/self/ns/net", &found);
    return std::to_string(found.st_ino);
  }
  keeper::Exec burden(const std::string& kind, const std::string& last) {
    return sandbox().hostile({"burden", kind, host_network(), last});
  }
  // The output of a command that keeps running, once it has printed this much.
  std::string said_by(Sandbox& where, const std::string& exec_id, const std::string& ending) {
    std::string out;
    EXPECT_TRUE(eventually([&] { return (out = where.output_of(exec_id)).ends_with(ending); }))
        << out;
    return out;
  }
  std::string shell(const std::string& script) {
    keeper::Exec exec = sandbox().hostile({});
    exec.argv = {"/bin/sh", "-c", script};
    const auto deed = sandbox().run(exec);
    EXPECT_TRUE(deed) << (deed ? "" : deed.error().message);
    return deed ? deed->out : "";
  }

 private:
  std::string unavailable_;
  HostileProgram hostile_;
  HostBait bait_{hostile_.path()};
  std::unique_ptr<Sandbox> sandbox_;
};

#define BERTH_NEEDS_SANDBOX() \
  if (!is_made()) GTEST_SKIP() << unavailable()

TEST_P(SandboxTest, SeesNothingOfItsNeighbour) {
  BERTH_NEEDS_SANDBOX();
  const auto neighbour = another();
  ASSERT_NE(neighbour, nullptr);
  const keeper::Exec leaving = neighbour->hostile({"neighbour", "leave", marker()});
  ASSERT_TRUE(neighbour->client().exec(leaving));
  const std::string left = said_by(*neighbour, leaving.exec_id, "waiting\n");

  // Looking from the same sandbox finds everything that could be left there, so the check works.
  const auto own = neighbour->run(neighbour->hostile({"neighbour", "find", marker()}));
  ASSERT_TRUE(own);
  std::istringstream lines{left};
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("left ")) continue;
    EXPECT_THAT(own->out, HasSubstr("found " + line.substr(5))) << left;
  }
  EXPECT_THAT(left, HasSubstr("left abstract socket"));

  const auto other = sandbox().run(sandbox().hostile({"neighbour", "find", marker()}));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->out, "looked\n");
}

TEST_P(SandboxTest, RunsCommandsFilteredAndWithoutNewPrivileges) {
  BERTH_NEEDS_SANDBOX();
  const std::string status = shell("cat /proc/self/status");
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1\n"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2\n"));
  if (GetParam().identity == Identity::user) {
    EXPECT_THAT(status, HasSubstr("CapEff:\t0000000000000000\n"));
    EXPECT_THAT(status, HasSubstr("CapPrm:\t0000000000000000\n"));
    EXPECT_THAT(status, HasSubstr("CapBnd:\t0000000000000000\n"));
    EXPECT_THAT(status, HasSubstr("Uid:\t1000\t1000\t1000\t1000\n"));
  } else {
    EXPECT_THAT(status, HasSubstr("Uid:\t0\t0\t0\t0\n"));
  }
}

TEST_P(SandboxTest, OwnsNothingAsAUserOfTheHost) {
  BERTH_NEEDS_SANDBOX();
  EXPECT_EQ(shell("echo x > /tmp/made && echo made"), "made\n");
  const auto root = sandbox().client().root();
  ASSERT_TRUE(root) << root.error().message;
  struct stat made = {};
  ASSERT_EQ(::fstatat(root->get(), "tmp/made", &made, AT_SYMLINK_NOFOLLOW), 0);
  const uid_t starter = GetParam().starter == Starter::root ? 0 : 65534;
  if (GetParam().starter == Starter::root) {
    EXPECT_GE(made.st_uid, 65536U);
    EXPECT_GE(made.st_gid, 65536U);
  } else if (::geteuid() == 0) {
    EXPECT_EQ(made.st_uid, starter);
  }
}

// Root inside installs packages with such files, so it may create them.
class UserWithAFolderOfTheHost : public SandboxTest {};

TEST_P(UserWithAFolderOfTheHost, MakesNoSetUserIdFilesInIt) {
  BERTH_NEEDS_SANDBOX();
  const tests::TemporaryFolder shared;
  if (GetParam().starter == Starter::ordinary && ::geteuid() == 0) {
    ASSERT_EQ(::chown(shared.path().c_str(), 65534, 65534), 0);
  }
  const HostileProgram hostile;
  auto plan = plan_of(GetParam(), hostile.path());
  plan.binds.push_back(
      {.source = shared.path(), .target = "/work", .access = keeper::sandbox::Access::writable});
  auto made = Sandbox::make({.place = GetParam(), .plan = plan, .environment = {}});
  ASSERT_TRUE(made) << made.error().message;
  keeper::Exec exec = (*made)->hostile({});
  exec.argv = {
      "/bin/sh", "-c",
      "cp /bin/true /work/made; chmod 2755 /work/made; chmod 4755 /work/made; ls -ln /work"};
  const auto deed = (*made)->run(exec);
  ASSERT_TRUE(deed);
  struct stat file = {};
  ASSERT_EQ(::stat(shared.file("made").c_str(), &file), 0) << deed->out;
  EXPECT_EQ(file.st_mode & (S_ISUID | S_ISGID), 0U)
      << deed->out << " on the host it belongs to " << file.st_uid;
}

// A folder in /usr, on the test's own mounts, with files for only one host user.
class ClosedFilesOfUsr {
 public:
  ClosedFilesOfUsr() {
    is_there_ = ::unshare(CLONE_NEWNS) == 0 &&
                ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                ::mount("tmpfs", folder, "tmpfs", 0, "mode=0755") == 0;
    std::ofstream{folder + std::string{"/open"}} << "readable";
    std::ofstream{folder + std::string{"/secret"}} << "closed";
    ::mkdir((folder + std::string{"/closed"}).c_str(), 0700);
    std::ofstream{folder + std::string{"/closed/secret"}} << "closed";
    for (const char* name : {"/secret", "/closed", "/closed/secret"}) {
      is_there_ = is_there_ && ::chown((folder + std::string{name}).c_str(), owner, owner) == 0;
    }
    ::chmod((folder + std::string{"/secret"}).c_str(), 0600);
  }
  ClosedFilesOfUsr(const ClosedFilesOfUsr&) = delete;
  ClosedFilesOfUsr& operator=(const ClosedFilesOfUsr&) = delete;
  ~ClosedFilesOfUsr() { ::umount2(folder, MNT_DETACH); }
  bool is_there() const { return is_there_; }

  static constexpr const char* folder = "/usr/local/src";
  static constexpr uid_t owner = 996;

 private:
  bool is_there_ = false;
};

TEST_P(SandboxTest, ReadsOfTheHostsProgramsWhatEverybodyMay) {
  BERTH_NEEDS_SANDBOX();
  if (::geteuid() != 0) GTEST_SKIP() << "only root can lay out files of others";
  const ClosedFilesOfUsr files;
  ASSERT_TRUE(files.is_there());
  const auto other = another();
  ASSERT_NE(other, nullptr);
  keeper::Exec exec = other->hostile({});
  const std::string owner = std::to_string(ClosedFilesOfUsr::owner);
  const std::string as_owner =
      "setpriv --reuid " + owner + " --regid " + owner + " --clear-groups ";
  const std::string look = "cat open secret closed/secret; ls closed; ";
  exec.argv = {
      "/bin/sh", "-c",
      "cd " + std::string{ClosedFilesOfUsr::folder} + "; exec 2>/dev/null; " + look + as_owner +
          "sh -c 'cat secret closed/secret; ls closed'; echo; "
          "python3 -c 'print(1)' 2>&1 || true; bash -c 'echo 2'; id -u >/dev/null; echo 3"};
  const auto deed = other->run(exec);
  ASSERT_TRUE(deed) << deed.error().message;
  EXPECT_THAT(deed->out, HasSubstr("readable\n"));
  EXPECT_THAT(deed->out, HasSubstr("2\n3\n"));
  EXPECT_THAT(deed->out, Not(HasSubstr("closed")));
  EXPECT_THAT(deed->out, Not(HasSubstr("secret")));
}

std::string boot_id() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  std::getline(file, id);
  return id;
}

TEST_P(SandboxTest, HasABootIdOfItsOwn) {
  BERTH_NEEDS_SANDBOX();
  const std::string id = shell("cat /proc/sys/kernel/random/boot_id");
  EXPECT_EQ(id.size(), 37U) << id;
  EXPECT_NE(id, boot_id() + "\n");
  EXPECT_EQ(shell("cat /proc/sys/kernel/random/boot_id"), id);
  const auto neighbour = another();
  ASSERT_NE(neighbour, nullptr);
  keeper::Exec exec = neighbour->hostile({});
  exec.argv = {"/bin/cat", "/proc/sys/kernel/random/boot_id"};
  const auto deed = neighbour->run(exec);
  ASSERT_TRUE(deed) << deed.error().message;
  EXPECT_EQ(deed->out.size(), 37U);
  EXPECT_NE(deed->out, id);
}

TEST_P(SandboxTest, LeavesNothingWhenItEnds) {
  BERTH_NEEDS_SANDBOX();
  // In the test's own mount namespace no other process's mounts come and go.
  if (::geteuid() == 0) {
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  }
  const std::string before = mounts();
  auto other = another();
  ASSERT_NE(other, nullptr);
  keeper::Exec daemon = other->hostile({"daemon_survives", "marker=left-" + marker()});
  daemon.leftovers = keeper::Leftovers::linger;
  ASSERT_TRUE(other->run(daemon));
  const Remains remains{other->isolation().init_pid};
  EXPECT_TRUE(remains.knows_namespaces());
  EXPECT_NE(remains.still_there(), "");
  EXPECT_FALSE(processes_with("left-" + marker()).empty());

  const auto stopped = other->stop();
  ASSERT_TRUE(stopped) << stopped.error().message;
  EXPECT_TRUE(eventually([&] { return remains.still_there().empty(); })) << remains.still_there();
  EXPECT_TRUE(processes_with("left-" + marker()).empty());
  if (::geteuid() == 0) EXPECT_EQ(mounts(), before);
}

TEST_P(SandboxTest, EndsWithItsKeeper) {
  BERTH_NEEDS_SANDBOX();
  const keeper::Exec stubborn = burden("stubborn", "s-" + marker());
  ASSERT_TRUE(sandbox().client().exec(stubborn));
  said_by(sandbox(), stubborn.exec_id, "stubborn\n");
  EXPECT_TRUE(eventually([&] { return processes_with("s-" + marker()).size() == 11; }));
  const Remains remains{sandbox().isolation().init_pid};
  sandbox().lose_keeper();
  EXPECT_TRUE(eventually([&] { return processes_with("s-" + marker()).empty(); }));
  // The test has to reap its first process then; its groups are removed by the next sweep.
  EXPECT_TRUE(eventually([&] {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    keeper::sandbox::sweep_leftovers(keeper::sandbox::detect_layout());
    return remains.still_there().empty();
  })) << remains.still_there();
}

TEST_P(SandboxTest, EndsEveryDaemonOfACommandAtItsDeadline) {
  BERTH_NEEDS_SANDBOX();
  keeper::Exec stubborn = burden("stubborn", "d-" + marker());
  stubborn.deadline_ms = 500;
  const auto deed = sandbox().run(stubborn);
  ASSERT_TRUE(deed) << deed.error().message;
  EXPECT_EQ(deed->ended.outcome, keeper::Outcome::timed_out);
  EXPECT_EQ(deed->ended.left_behind, 0U);
  EXPECT_TRUE(processes_with("d-" + marker()).empty());
  EXPECT_EQ(shell("echo alive"), "alive\n");
}

TEST_P(SandboxTest, EndsACommandThatHasStoppedItsWarden) {
  BERTH_NEEDS_SANDBOX();
  const keeper::Exec stopping = burden("stop", marker());
  // The start of the command is never reported when the warden is stopped before that.
  sandbox().client().send(stopping);
  EXPECT_EQ(shell("echo alive"), "alive\n");
  const auto ended = sandbox().client().cancel(stopping.exec_id, 0ms);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->left_behind, 0U);
  EXPECT_TRUE(sandbox().stop());
}

TEST_P(SandboxTest, EndsACommandAtItsDeadlineThoughItKeepsItsWardenStopped) {
  BERTH_NEEDS_SANDBOX();
  keeper::Exec stopping = sandbox().hostile({});
  stopping.argv = {"/bin/sh", "-c",
                   "setsid sh -c 'while :; do kill -STOP $0; done' $PPID & "
                   "while :; do kill -STOP $PPID; done",
                   "k-" + marker()};
  stopping.deadline_ms = 500;
  const auto begun = std::chrono::steady_clock::now();
  sandbox().client().send(stopping);
  const auto ended = sandbox().client().wait(stopping.exec_id, 60s);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, keeper::Outcome::timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
  EXPECT_TRUE(eventually([&] { return processes_with("k-" + marker()).empty(); }));
  EXPECT_EQ(shell("echo alive"), "alive\n");
}

TEST_P(SandboxTest, IsLeftToItsFirstProcessWhenItIsEmptied) {
  BERTH_NEEDS_SANDBOX();
  const keeper::Exec stubborn = burden("stubborn", "e-" + marker());
  ASSERT_TRUE(sandbox().client().exec(stubborn));
  said_by(sandbox(), stubborn.exec_id, "stubborn\n");
  keeper::Exec daemon = sandbox().hostile({"daemon_survives", "marker=e-" + marker()});
  daemon.leftovers = keeper::Leftovers::linger;
  ASSERT_TRUE(sandbox().run(daemon));
  EXPECT_TRUE(eventually([&] { return processes_with("e-" + marker()).size() > 11U; }));

  const Result<> emptied = sandbox().client().empty();
  ASSERT_TRUE(emptied) << emptied.error().message;
  EXPECT_TRUE(processes_with("e-" + marker()).empty());
  EXPECT_TRUE(keeper::descendants_of(sandbox().isolation().init_pid).empty());
  // It serves the next one, and can be emptied repeatedly.
  EXPECT_EQ(shell("echo alive"), "alive\n");
  EXPECT_TRUE(sandbox().client().empty());
  EXPECT_TRUE(sandbox().client().empty());
  // Pid 1, the warden and the shell.
  EXPECT_EQ(shell("set -- /proc/[0-9]*; echo $#"), "3\n");
}

TEST_P(SandboxTest, IsNotSaidToBeEmptyAfterACommandWasLost) {
  BERTH_NEEDS_SANDBOX();
  keeper::Exec killing = sandbox().hostile({});
  killing.argv = {"/bin/sh", "-c", "(setsid sleep 50 &); kill -9 $PPID; sleep 50"};
  const auto deed = sandbox().run(killing);
  ASSERT_TRUE(deed) << deed.error().message;
  EXPECT_EQ(deed->ended.outcome, keeper::Outcome::lost);
  const Result<> emptied = sandbox().client().empty();
  ASSERT_FALSE(emptied);
  EXPECT_EQ(emptied.error().code, Errc::process_lost);
}

TEST_P(SandboxTest, OutlivesACommandThatKillsEveryone) {
  BERTH_NEEDS_SANDBOX();
  const auto neighbour = another();
  ASSERT_NE(neighbour, nullptr);
  const keeper::Exec waiting = neighbour->hostile({"neighbour", "leave", marker()});
  ASSERT_TRUE(neighbour->client().exec(waiting));
  said_by(*neighbour, waiting.exec_id, "waiting\n");

  const auto deed = sandbox().run(burden("kill", marker()));
  ASSERT_TRUE(deed) << deed.error().message;
  EXPECT_EQ(shell("echo alive"), "alive\n");
  const auto listing = neighbour->client().list();
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->live.size(), 1U);
}

TEST_P(SandboxTest, StopsInTheMiddleOfAForkBomb) {
  BERTH_NEEDS_SANDBOX();
  const keeper::Exec bomb = burden("breed", "b-" + marker());
  ASSERT_TRUE(sandbox().client().exec(bomb));
  EXPECT_TRUE(eventually([&] { return processes_with("b-" + marker()).size() > 20; }));
  const Remains remains{sandbox().isolation().init_pid};
  const auto stopped = sandbox().stop();
  ASSERT_TRUE(stopped) << stopped.error().message;
  EXPECT_TRUE(eventually([&] { return remains.still_there().empty(); })) << remains.still_there();
  EXPECT_TRUE(processes_with("b-" + marker()).empty());
}

std::uint64_t peak_memory_kib(pid_t pid) {
  std::ifstream status{"/proc/" + std::to_string(pid) + "/status"};
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib;
  }
  return 0;
}

TEST_P(SandboxTest, DoesNotMakeItsKeeperGrowByFloodsOfOutput) {
  BERTH_NEEDS_SANDBOX();
  constexpr std::uint64_t growth_kib_max = 8192;
  const std::uint64_t before = peak_memory_kib(sandbox().keeper_pid());
  ASSERT_GT(before, 0U);
  for (const auto& [kind, bytes] : {std::pair{"flood", "268435456"}, {"drip", "50000"}}) {
    keeper::Exec flood = burden(kind, bytes);
    flood.output_bytes_max = 1 << 20;
    const auto deed = sandbox().run(flood);
    ASSERT_TRUE(deed) << deed.error().message;
    EXPECT_EQ(deed->ended.code, 0);
    EXPECT_EQ(std::to_string(deed->ended.stdout_bytes), bytes);
    EXPECT_LE(deed->out.size(), flood.output_bytes_max);
  }
  EXPECT_LT(peak_memory_kib(sandbox().keeper_pid()), before + growth_kib_max);
}

TEST_P(SandboxTest, TakesGarbageAtItsTerminalForOutput) {
  BERTH_NEEDS_SANDBOX();
  keeper::Exec garbage = burden("garbage", "300000");
  garbage.rows = 24;
  garbage.columns = 80;
  const auto deed = sandbox().run(garbage);
  ASSERT_TRUE(deed) << deed.error().message;
  EXPECT_EQ(deed->ended.code, 0);
  EXPECT_GE(deed->out.size(), 300000U);
  EXPECT_THAT(deed->out, HasSubstr("\x1b]52;c;"));
  EXPECT_EQ(shell("echo alive"), "alive\n");
}

TEST_P(SandboxTest, SurvivesTheDeathOfACommandForMemory) {
  BERTH_NEEDS_SANDBOX();
  for (const keeper::Missing& missing : sandbox().isolation().missing) {
    if (missing.feature.contains("memory")) GTEST_SKIP() << missing.reason;
  }
  const auto bomb = sandbox().run(
      sandbox().hostile({"memory_bomb", "memory_bytes_max=" + std::to_string(memory_bytes_max)}));
  ASSERT_TRUE(bomb) << bomb.error().message;
  EXPECT_EQ(bomb->verdict(), "killed SIGKILL");
  EXPECT_EQ(shell("echo alive"), "alive\n");
}

std::string name_of_case(const testing::TestParamInfo<Place>& info) {
  return name_of(info.param);
}

INSTANTIATE_TEST_SUITE_P(Every, SandboxTest,
                         testing::Values(Place{Starter::root, Identity::user},
                                         Place{Starter::root, Identity::root},
                                         Place{Starter::ordinary, Identity::user},
                                         Place{Starter::ordinary, Identity::root}),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Every, UserWithAFolderOfTheHost,
                         testing::Values(Place{Starter::root, Identity::user},
                                         Place{Starter::ordinary, Identity::user}),
                         name_of_case);

}  // namespace

}  // namespace berth::security_test
