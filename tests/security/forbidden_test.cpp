#include "base/owned.hpp"
#include "keeper/sandbox/landlock.hpp"
#include "security/place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>

// What can be created if user namespaces are forbidden, and what cannot.
namespace berth::security_test {

namespace {

using keeper::sandbox::Identity;
using keeper::sandbox::Level;
using keeper::sandbox::Plan;
using testing::Contains;
using testing::HasSubstr;

constexpr Place by_root{Starter::root, Identity::user, UserNamespaces::forbidden};
constexpr Place by_anybody{Starter::ordinary, Identity::user, UserNamespaces::forbidden};

class Forbidden : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can forbid them to a keeper";
  }
  Plan plan_for(const Place& place) { return plan_of(place, hostile_.path()); }
  Result<std::unique_ptr<Sandbox>> make(const Place& place, const Plan& plan) {
    return Sandbox::make({.place = place, .plan = plan, .environment = {}});
  }
  static bool has_landlock() { return keeper::sandbox::landlock_version() > 0; }
  static std::string said(Sandbox& sandbox, const std::string& script) {
    keeper::Exec exec = sandbox.hostile({});
    exec.argv = {"/bin/sh", "-c", script};
    const auto deed = sandbox.run(exec);
    EXPECT_TRUE(deed) << (deed ? "" : deed.error().message);
    return deed ? deed->out : "";
  }
  static bool lacks(const Sandbox& sandbox, std::string_view feature) {
    const auto& missing = sandbox.isolation().missing;
    return std::ranges::find(missing, feature, &keeper::Missing::feature) != missing.end();
  }

 private:
  HostileProgram hostile_;
};

TEST_F(Forbidden, RootsSandboxHasOrdinaryIdsAndSaysSo) {
  const auto made = make(by_root, plan_for(by_root));
  ASSERT_TRUE(made) << made.error().message;
  Sandbox& sandbox = **made;
  EXPECT_LE(sandbox.isolation().level, Level::standard);
  EXPECT_TRUE(lacks(sandbox, "user-namespace"));
  EXPECT_THAT(sandbox.isolation().features, Contains("uid-range"));
  EXPECT_GE(std::stoul(said(sandbox, "id -u")), 65536U);
  EXPECT_EQ(said(sandbox, "id -un; id -G | wc -w"), "sandbox\n1\n");
  const std::string status = said(sandbox, "cat /proc/self/status");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_THAT(status, HasSubstr(std::string{set} + ":\t0000000000000000\n"));
  }
}

TEST_F(Forbidden, NobodyInRootsSandboxIsZeroThoughThePlanSaysSo) {
  Plan plan = plan_for(by_root);
  plan.user = {.uid = 0, .gid = 0};
  const auto made = make(by_root, plan);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(lacks(**made, "root-identity"));
  EXPECT_GE(std::stoul(said(**made, "id -u")), 65536U);
  EXPECT_EQ(said(**made, "touch /made /etc/made && echo its own root is its own"),
            "its own root is its own\n");
}

TEST_F(Forbidden, APlanThatWantsAllWallsIsRefused) {
  Plan plan = plan_for(by_root);
  plan.min_level = Level::strong;
  const auto made = make(by_root, plan);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::isolation_too_weak);
  EXPECT_THAT(made.error().message, HasSubstr("user-namespace"));
}

TEST_F(Forbidden, TheLeastIsMadeOnlyForAPlanThatAcceptsIt) {
  Plan plan = plan_for(by_anybody);
  plan.min_level = Level::weak;
  const auto refused = make(by_anybody, plan);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::sandbox_unavailable);
  EXPECT_THAT(refused.error().remedy, HasSubstr("sysctl -w user.max_user_namespaces=15000"));

  if (!has_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  const auto made = make(by_anybody, plan_for(by_anybody));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)->isolation().level, Level::minimal);
  for (const char* feature : {"user-namespace", "pid-namespace", "mount-namespace"}) {
    EXPECT_TRUE(lacks(**made, feature)) << feature;
  }
}

TEST_F(Forbidden, TheLeastRefusesWhatItCannotHold) {
  std::vector<Plan> plans(4, plan_for(by_anybody));
  plans[0].layers = {"/usr"};
  plans[1].binds = {{.source = "/usr", .target = "/data"}};
  plans[2].user = {.uid = 0, .gid = 0};
  plans[3].allow(keeper::sandbox::AllowPtrace{});
  for (const Plan& plan : plans) {
    const auto made = make(by_anybody, plan);
    ASSERT_FALSE(made) << "plan " << &plan - plans.data();
    EXPECT_EQ(made.error().code, Errc::sandbox_unavailable) << made.error().message;
  }
}

// That would end all processes of its user.
TEST_F(Forbidden, TheLeastIsNotEmptied) {
  if (!has_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  const auto made = make(by_anybody, plan_for(by_anybody));
  ASSERT_TRUE(made) << made.error().message;
  const Result<> emptied = (*made)->client().empty();
  ASSERT_FALSE(emptied);
  EXPECT_EQ(emptied.error().code, Errc::execution_unsupported);
}

TEST_F(Forbidden, NobodyOfTheLeastOutlivesIt) {
  if (!has_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  const auto made = make(by_anybody, plan_for(by_anybody));
  ASSERT_TRUE(made) << made.error().message;
  Sandbox& sandbox = **made;
  const std::string box = sandbox.box();
  // One whose parents ended, one that killed its own warden, and one that ignores signals.
  keeper::Exec exec = sandbox.hostile({});
  exec.argv = {
      "/bin/sh", "-c",
      "cd \"$0\"; (setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' &) ; "
      "(setsid sleep 1000 &); touch ready; kill -9 $PPID; sleep 1000",
      sandbox.box()};
  const auto started = sandbox.client().exec(exec);
  ASSERT_TRUE(started) << started.error().message;
  const auto is_gone = [&] {
    FILE* found = ::popen(("for p in /proc/[0-9]*; do [ \"$(readlink $p/cwd)\" = '" + box +
                           "' ] && echo $p; done 2>/dev/null")
                              .c_str(),
                          "re");
    const bool is_empty = found != nullptr && std::fgetc(found) == EOF;
    if (found != nullptr) ::pclose(found);
    return is_empty;
  };
  ASSERT_TRUE(eventually([&] { return ::access((box + "/ready").c_str(), F_OK) == 0; }));
  EXPECT_FALSE(is_gone());
  ASSERT_TRUE(sandbox.stop());
  EXPECT_TRUE(eventually(is_gone));
}

// A process of the same user as the commands of the minimal level.
class SameUser {
 public:
  SameUser() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    const Fd ready{ends[0]};
    Fd told{ends[1]};
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const bool is_other = ::setgroups(0, nullptr) == 0 && ::setresgid(id, id, id) == 0 &&
                            ::setresuid(id, id, id) == 0;
      // Executed, so that it is as open to its own user as others are.
      if (is_other) ::execl("/bin/sleep", "sleep", "1000", nullptr);
      ::_exit(1);
    }
    told = Fd{};
    char none = 0;
    while (::read(ready.get(), &none, 1) > 0) {
    }
  }
  SameUser(const SameUser&) = delete;
  SameUser& operator=(const SameUser&) = delete;
  ~SameUser() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::string pid() const { return std::to_string(pid_); }

  static int runs(const std::string& script) {
    const std::string as_them = "setpriv --reuid 65534 --regid 65534 --clear-groups -- sh -c '" +
                                script + "' >/dev/null 2>&1";
    return ::system(as_them.c_str());
  }

  static constexpr uid_t id = 65534;

 private:
  pid_t pid_ = 0;
};

// A host process that accepts connections on its loopback.
class Listener {
 public:
  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    const bool listens = ::bind(socket_.get(), raw, size) == 0 && ::listen(socket_.get(), 8) == 0 &&
                         ::getsockname(socket_.get(), raw, &size) == 0;
    if (listens) port_ = ntohs(address.sin_port);
  }
  std::string port() const { return std::to_string(port_); }

 private:
  Fd socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::uint16_t port_ = 0;
};

TEST_F(Forbidden, TheLeastReachesNothingElseOfItsUser) {
  if (!has_landlock()) GTEST_SKIP() << "this kernel has no Landlock";
  const auto made = make(by_anybody, plan_for(by_anybody));
  ASSERT_TRUE(made) << made.error().message;
  const auto other = make(by_anybody, plan_for(by_anybody));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(said(**other, "echo secret > \"" + (*other)->box() + "/f\"; echo done"), "done\n");
  const SameUser bait;
  const Listener listener;
  const std::string file = (*other)->box() + "/f";
  const std::string proc = "/proc/" + bait.pid();
  int shown = 0;
  for (const std::string& attempt :
       {"cat " + file, "ls " + (*other)->box(), "echo x >> " + file, "truncate -s 1 " + file,
        "ln " + file + " mine", "mv " + file + " mine", "cat " + proc + "/environ",
        "ls -l " + proc + "/fd", "kill -CONT " + bait.pid(), "renice -n 7 " + bait.pid(),
        "bash -c \": </dev/tcp/127.0.0.1/" + listener.port() + "\"",
        "bash -c \"echo >/dev/udp/127.0.0.1/" + listener.port() + "\"",
        "prlimit --pid " + bait.pid() + " --nofile=64:64", "taskset -pc 0 " + bait.pid(),
        std::string{"made=$(ipcmk -M 4096 | tr -dc 0-9) && ipcrm -m $made"}}) {
    const std::string script = "cd " + (*made)->box() + "; " + attempt;
    EXPECT_EQ(said(**made, script + " >/dev/null 2>&1 && echo OPEN"), "") << attempt;
    // If the tool exists, the same user can do it without a sandbox.
    if (SameUser::runs(attempt.contains("mine") ? "true" : attempt) == 0) ++shown;
  }
  EXPECT_GE(shown, 10);
}

}  // namespace

}  // namespace berth::security_test
