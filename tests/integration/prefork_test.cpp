#include "keeper/holder/prefork.hpp"
#include "integration/keeper_fixture.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/client.hpp"
#include "keeper/protocol/descriptors.hpp"
#include "keeper/protocol/output.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "keeper/sandbox/namespaces.hpp"
#include "keeper/sandbox/spare_networks.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <set>

namespace berth::keeper_test {
namespace {

using keeper::sandbox::SpareNetworks;

constexpr uid_t ordinary_user = 65534;

std::string command_line_of(pid_t pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/cmdline"};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// A sandbox whose keeper comes from a prefork.
class Nursed {
 public:
  Nursed(std::string folder, Fd control)
      : folder_(std::move(folder)), client_(std::move(control)) {}

  keeper::KeeperClient& client() { return client_; }
  pid_t keeper_pid() const {
    const auto found = keeper::look_at_keeper(folder_);
    return found ? found->identity.pid : 0;
  }
  std::string said(const std::string& script) {
    const keeper::Exec exec{.exec_id = "e" + std::to_string(++last_id_),
                            .argv = {"sh", "-c", script},
                            .environment = {"PATH=/usr/bin:/bin"},
                            .cwd = "/"};
    const auto ended = client_.run(exec);
    EXPECT_TRUE(ended) << (ended ? "" : ended.error().message);
    std::string out;
    auto reader = keeper::OutputReader::open(folder_ + "/" + keeper::output_file(exec.exec_id));
    while (reader) {
      const auto record = reader->next();
      if (!record || !*record) break;
      out += (*record)->bytes;
    }
    return out;
  }
  // Returns when its keeper has ended.
  void end() {
    const pid_t pid = keeper_pid();
    const auto stopped = client_.stop(std::chrono::milliseconds{0});
    EXPECT_TRUE(stopped) << (stopped ? "" : stopped.error().message);
    EXPECT_TRUE(eventually([&] { return !is_running(pid); }));
  }

 private:
  std::string folder_;
  keeper::KeeperClient client_;
  int last_id_ = 0;
};

class PreforkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    // The prefork is an orphan, so it becomes the test's child.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    prefork_.emplace(keeper::KeeperPrefork::Options{.program = BERTH_KEEPER});
  }
  void TearDown() override {
    prefork_.reset();
    EXPECT_TRUE(eventually([] { return children().empty(); })) << "processes are left";
  }

  static std::vector<pid_t> children() {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return keeper::descendants_of(::getpid());
  }
  static pid_t prefork_pid() {
    for (const pid_t pid : children()) {
      if (command_line_of(pid).contains("prefork") &&
          keeper::process_stat(pid)->parent == ::getpid()) {
        return pid;
      }
    }
    return 0;
  }
  // The keepers that wait for a request.
  static std::vector<pid_t> unborn() {
    std::vector<pid_t> found;
    const pid_t prefork = prefork_pid();
    for (const pid_t pid : keeper::descendants_of(prefork)) {
      const auto stat = keeper::process_stat(pid);
      if (stat && stat->parent == prefork && command_line_of(pid).contains("prefork")) {
        found.push_back(pid);
      }
    }
    return found;
  }
  std::optional<Nursed> start(const keeper::sandbox::Plan& plan = {}) {
    const std::string folder = folder_.file("k" + std::to_string(++last_));
    auto control = prefork_->start_keeper(folder);
    EXPECT_TRUE(control) << (control ? "" : control.error().message);
    if (!control) return std::nullopt;
    Nursed made{folder, *std::move(control)};
    const auto confined = made.client().confine(plan);
    EXPECT_TRUE(confined) << (confined ? "" : confined.error().message);
    if (!confined) return std::nullopt;
    return made;
  }
  const std::string& folder() const { return folder_.path(); }
  keeper::KeeperPrefork& prefork() { return *prefork_; }
  void close_prefork() { prefork_.reset(); }

 private:
  tests::TemporaryFolder folder_;
  std::optional<keeper::KeeperPrefork> prefork_;
  int last_ = 0;
};

TEST_F(PreforkTest, GivesKeepersThatHoldASandboxAndShowTheirFolder) {
  for (int i = 0; i < 3; ++i) {
    auto nursed = start();
    ASSERT_TRUE(nursed);
    EXPECT_EQ(nursed->said("cat /proc/1/comm"), "berth-init\n");
    const std::string shown = command_line_of(nursed->keeper_pid());
    EXPECT_TRUE(shown.starts_with(std::string{"berth-keeper\0hold\0", 18} + folder())) << shown;
    nursed->end();
  }
}

TEST_F(PreforkTest, HasKeepersReadyWhoseSandboxesSeeTheMountsOfTheHostAsTheyAreNow) {
  start()->end();
  ASSERT_TRUE(eventually([] { return !unborn().empty(); }));
  const std::string source = folder() + "/mounted";
  std::filesystem::create_directory(source);
  ASSERT_EQ(::mount("tmpfs", source.c_str(), "tmpfs", 0, "size=64k"), 0);
  std::ofstream{source + "/file"} << "new";
  keeper::sandbox::Plan plan;
  plan.binds = {{.source = source, .target = "/mounted"}};
  auto nursed = start(plan);
  if (nursed) {
    EXPECT_EQ(nursed->said("cat /mounted/file"), "new");
    nursed->end();
  }
  EXPECT_EQ(::umount2(source.c_str(), MNT_DETACH), 0);
}

TEST_F(PreforkTest, TakesPlansThatAreLongerThanAPacket) {
  keeper::sandbox::Plan plan;
  for (int i = 0; i < 12; ++i) {
    plan.binds.push_back({.source = "/etc/hostname",
                          .target = "/" + std::string(200, 'd') + "/" + std::to_string(i)});
    plan.directories.push_back("/made/" + std::string(200, 'x') + "/" + std::string(200, 'y') +
                               "/" + std::string(200, 'z') + "/" + std::to_string(i));
  }
  auto nursed = start(plan);
  ASSERT_TRUE(nursed);
  EXPECT_EQ(nursed->said("ls /" + std::string(200, 'd') + " | wc -l"), "12\n");
  nursed->end();
}

TEST_F(PreforkTest, IsReplacedWhenItWasKilled) {
  auto before = start();
  ASSERT_TRUE(before);
  // Then it is not about to fork another process, which would hold its socket for another moment.
  ASSERT_TRUE(eventually([] { return unborn().size() == 4; }));
  const pid_t killed = prefork_pid();
  ASSERT_NE(killed, 0);
  ::kill(killed, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !is_running(killed); }));
  auto after = start();
  ASSERT_TRUE(after);
  EXPECT_EQ(after->said("cat /proc/1/comm"), "berth-init\n");
  EXPECT_EQ(before->said("echo alive"), "alive\n");
  before->end();
  after->end();
}

TEST_F(PreforkTest, EndsWithItsServerAndLeavesNoGroupOfAnUnbornSandbox) {
  start()->end();
  ASSERT_TRUE(eventually([] { return unborn().size() > 1; }));
  const std::vector<pid_t> were_unborn = unborn();
  close_prefork();
  ASSERT_TRUE(eventually([] { return children().empty(); }));
  const auto layout = keeper::sandbox::detect_layout();
  for (const std::string& name : keeper::sandbox::find_leftovers(layout)) {
    for (const pid_t pid : were_unborn) {
      EXPECT_FALSE(name.contains("." + std::to_string(pid) + "-")) << name;
    }
  }
}

TEST_F(PreforkTest, UsesANetworkAgainThatNothingWasSentIn) {
  std::set<std::string> seen;
  bool again = false;
  for (int i = 0; i < 20 && !again; ++i) {
    auto nursed = start();
    ASSERT_TRUE(nursed);
    again = !seen.insert(nursed->said("readlink /proc/self/ns/net")).second;
    nursed->end();
  }
  EXPECT_TRUE(again);
}

constexpr int cannot_be_here = 77;

// In its own process, which becomes an ordinary user and root of a user namespace, as in a rootless
// container. Reports failures on stderr.
int confine_as_root_of_a_namespace(const std::string& program, const std::string& folder) {
  if (::setgroups(0, nullptr) != 0 ||
      ::setresgid(ordinary_user, ordinary_user, ordinary_user) != 0 ||
      ::setresuid(ordinary_user, ordinary_user, ordinary_user) != 0) {
    return 1;
  }
  ::prctl(PR_SET_DUMPABLE, 1);  // or its /proc files belong to root
  const keeper::sandbox::IdMap own{.inside = 0, .outside = ordinary_user};
  if (::unshare(CLONE_NEWUSER) != 0 || keeper::sandbox::map_own_id(own, own) != 0) {
    return cannot_be_here;
  }
  keeper::KeeperPrefork prefork{keeper::KeeperPrefork::Options{.program = program}};
  auto control = prefork.start_keeper(folder);
  if (!control) {
    std::cerr << control.error().message << "\n";
    return 1;
  }
  keeper::KeeperClient client{*std::move(control)};
  const auto confined = client.confine({});
  if (!confined) {
    std::cerr << confined.error().message << "; " << confined.error().remedy << "\n";
    const bool is_told =
        confined.error().code == Errc::sandbox_unavailable && !confined.error().remedy.empty();
    return is_told ? cannot_be_here : 1;
  }
  const auto has = [&](const char* feature) {
    return std::ranges::find(confined->features, feature) != confined->features.end();
  };
  return client.stop(std::chrono::milliseconds{0}) && has("user-namespace") && !has("uid-range")
             ? 0
             : 1;
}

TEST_F(PreforkTest, OfTheRootOfANamespaceGivesSandboxesAsThatOfAnOrdinaryUser) {
  ::chmod(folder().c_str(), 0755);
  const std::string program = folder() + "/berth-keeper";
  std::filesystem::copy_file(BERTH_KEEPER, program);
  const std::string home = folder() + "/home";
  std::filesystem::create_directory(home);
  ASSERT_EQ(::chown(home.c_str(), ordinary_user, ordinary_user), 0);
  const pid_t server = ::fork();
  if (server == 0) ::_exit(confine_as_root_of_a_namespace(program, home + "/k"));
  int status = -1;
  ASSERT_EQ(::waitpid(server, &status, 0), server);
  if (WIFEXITED(status) && WEXITSTATUS(status) == cannot_be_here) {
    GTEST_SKIP() << "nobody makes namespaces in namespaces here";
  }
  EXPECT_EQ(status, 0);
}

// What a former tenant's process did in a network namespace, and whether it is reused.
class SpareNetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  }

  bool is_used_again_after(const std::function<void()>& deed) {
    Fd network = networks_.take();
    EXPECT_TRUE(network);
    const ino_t before = inode_of(network);
    const pid_t tenant = ::fork();
    if (tenant == 0) {
      if (::setns(network.get(), CLONE_NEWNET) != 0) ::_exit(1);
      deed();
      ::_exit(0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(tenant, &status, 0), tenant);
    EXPECT_EQ(status, 0);
    // Held, so that the kernel does not reuse its number meanwhile.
    const Fd held{::dup(network.get())};
    networks_.give_back(std::move(network));
    return inode_of(networks_.take()) == before;
  }

 private:
  static ino_t inode_of(const Fd& network) {
    struct stat found{};
    return ::fstat(network.get(), &found) == 0 ? found.st_ino : 0;
  }
  SpareNetworks networks_;
};

sockaddr_in discard_port() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

TEST_F(SpareNetworkTest, IsAsGoodAsNewWhenNothingWasDone) {
  EXPECT_TRUE(is_used_again_after([] {}));
}

TEST_F(SpareNetworkTest, IsNotMadeByWhoCouldNotComeBackFromIt) {
  const pid_t maker = ::fork();
  if (maker == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(cannot_be_here);
    // Here it may create one, and enter it; but its own belongs to the namespace that it left.
    SpareNetworks networks;
    ::_exit(networks.take() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(maker, &status, 0), maker);
  if (WIFEXITED(status) && WEXITSTATUS(status) == cannot_be_here) {
    GTEST_SKIP() << "there are no user namespaces here";
  }
  EXPECT_EQ(status, 0);
}

TEST_F(SpareNetworkTest, IsNotUsedAgainWhenAPacketWasSent) {
  EXPECT_FALSE(is_used_again_after([] {
    const sockaddr_in to = discard_port();
    const Fd socket{::socket(AF_INET, SOCK_DGRAM, 0)};
    ::sendto(socket.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }));
}

TEST_F(SpareNetworkTest, IsNotUsedAgainWhenAConnectionWasRefusedForWantOfARoute) {
  EXPECT_FALSE(is_used_again_after([] {
    sockaddr_in to = discard_port();
    to.sin_addr.s_addr = htonl(0x01010101);
    const Fd socket{::socket(AF_INET, SOCK_STREAM, 0)};
    ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }));
}

TEST_F(SpareNetworkTest, IsNotUsedAgainWhileSomebodyHoldsASocketOfIt) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd ours{ends[0]};
  const Fd theirs{ends[1]};
  // In flight it outlives the process that made it.
  EXPECT_FALSE(is_used_again_after([&] {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    keeper::send_with(theirs.get(), "x", {&socket, 1}, 0);
  }));
}

}  // namespace
}  // namespace berth::keeper_test
