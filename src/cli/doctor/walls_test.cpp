#include "cli/doctor/walls.hpp"

#include "base/files.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace berth::cli::doctor {
namespace {

using core::Wall;
using core::WallState;

TEST(Walls, WithoutKeysTheKernelNamesTheCallerUnlessEveryLocalUserIsTrusted) {
  const auto judge = [](Mode mode, TrustedUsers trusted, unsigned server_user) {
    return judge_callers(mode, trusted, server_user).state;
  };
  EXPECT_EQ(judge(Mode::authenticated, TrustedUsers::own, 0), WallState::stands);
  EXPECT_EQ(judge(Mode::authenticated, TrustedUsers::all, 0), WallState::stands);
  EXPECT_EQ(judge(Mode::local_trusted, TrustedUsers::own, 0), WallState::stands);
  EXPECT_EQ(judge(Mode::local_trusted, TrustedUsers::all, 1000), WallState::weak);
  EXPECT_EQ(judge(Mode::local_trusted, TrustedUsers::all, 0), WallState::open);
}

TEST(Walls, ConnectionsStandOnLoopbackOrWithTls) {
  const auto judge = [](std::string listen, std::optional<std::string> url, bool tls) {
    Settings settings;
    settings.listen = std::move(listen);
    settings.public_url = std::move(url);
    if (tls) settings.tls_cert = "/cert.pem";
    return judge_listener(settings).state;
  };
  EXPECT_EQ(judge("127.0.0.1:3100", std::nullopt, false), WallState::stands);
  EXPECT_EQ(judge("[::1]:3100", std::nullopt, false), WallState::stands);
  EXPECT_EQ(judge("0.0.0.0:3100", std::nullopt, true), WallState::stands);
  EXPECT_EQ(judge("0.0.0.0:3100", "https://berth.example", false), WallState::weak);
  EXPECT_EQ(judge("0.0.0.0:3100", std::nullopt, false), WallState::open);
  EXPECT_EQ(judge("127.0.0.1:3100", "http://berth.example", false), WallState::open);
}

TEST(Walls, ADatabaseElsewhereIsReachedOverVerifiedTls) {
  const auto judge = [](const std::string& url, const std::string& mode = "") {
    return judge_database(url, mode).state;
  };
  EXPECT_EQ(judge("postgresql:///berth"), WallState::stands);
  EXPECT_EQ(judge("postgresql:///berth?host=/run/postgresql"), WallState::stands);
  EXPECT_EQ(judge("postgresql://u:p@127.0.0.1:5432/berth"), WallState::stands);
  EXPECT_EQ(judge("postgresql://u:p@[::1]:5432/berth"), WallState::stands);
  EXPECT_EQ(judge("postgresql://u:p@db.example/berth?sslmode=verify-full"), WallState::stands);
  EXPECT_EQ(judge("postgresql://db.example/berth", "verify-full"), WallState::stands);
  EXPECT_EQ(judge("postgresql://db.example/berth?a=b&sslmode=require"), WallState::weak);
  EXPECT_EQ(judge("postgresql://db.example/berth"), WallState::open);
  EXPECT_EQ(judge("postgresql:///berth?host=db.example"), WallState::open);
  EXPECT_EQ(judge("postgresql://u:p%40@db.example/berth", "prefer"), WallState::open);
  EXPECT_FALSE(judge_database("postgresql://u:p4ss@db.example/b", "").reason.contains("p4ss"));
}

class WallFiles : public testing::Test {
 protected:
  WallFiles() {
    machine_.settings.home = folder_;
    machine_.settings.master_key_file = folder_ + "/master.key";
  }
  void write(const std::string& name, mode_t mode) {
    ASSERT_TRUE(replace_file(folder_ + "/" + name, "x", mode));
    ASSERT_EQ(::chmod((folder_ + "/" + name).c_str(), mode), 0);
  }

  const tests::TemporaryFolder temporary_;
  const std::string& folder_ = temporary_.path();
  Machine machine_;
};

TEST_F(WallFiles, AHomeThatOthersPassThroughStandsWhileItsFilesAreClosed) {
  write("berth.db", 0600);
  ASSERT_EQ(::mkdir((folder_ + "/plugins").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0711), 0);
  EXPECT_EQ(check_home_files(machine_)->state, WallState::stands);
  write("berth.db", 0644);
  const std::optional<Wall> opened = check_home_files(machine_);
  EXPECT_EQ(opened->state, WallState::open);
  EXPECT_TRUE(opened->reason.contains("berth.db")) << opened->reason;
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  EXPECT_EQ(check_home_files(machine_)->state, WallState::stands);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  EXPECT_EQ(check_home_files(machine_)->state, WallState::open);
}

TEST_F(WallFiles, AKeyFileIsItsOwnersAloneAndNotListedBeforeThereIsOne) {
  EXPECT_FALSE(check_key_file(machine_));
  write("master.key", 0600);
  EXPECT_EQ(check_key_file(machine_)->state, WallState::stands);
  write("master.key", 0640);
  EXPECT_EQ(check_key_file(machine_)->state, WallState::open);
  EXPECT_EQ(check_key_file(machine_)->against, core::Attacker::local_user);
}

TEST_F(WallFiles, WhatBelongsToAnotherUserThanTheServerIsOpen) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files away";
  write("lock", 0600);
  write("master.key", 0600);
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  ASSERT_EQ(::chown((folder_ + "/master.key").c_str(), 65533, 65533), 0);
  EXPECT_EQ(check_key_file(machine_)->state, WallState::open);
  ASSERT_EQ(::chown(folder_.c_str(), 65533, 65533), 0);
  const std::optional<Wall> home = check_home_files(machine_);
  EXPECT_EQ(home->state, WallState::open);
  EXPECT_TRUE(home->reason.contains("65533")) << home->reason;
  // The server's own user may own both.
  ASSERT_EQ(::chown((folder_ + "/lock").c_str(), 65533, 65533), 0);
  EXPECT_EQ(check_home_files(machine_)->state, WallState::stands);
  EXPECT_EQ(check_key_file(machine_)->state, WallState::stands);
}

TEST(Walls, ASandboxWithoutControlGroupsAndLandlockSaysSo) {
  const keeper::Confined all{
      .level = keeper::sandbox::Level::strong,
      .features = {"user-namespace", "uid-range", "landlock", "seccomp", "cgroup-limits"}};
  for (const Wall& wall : judge_sandbox(all)) {
    EXPECT_EQ(wall.state, WallState::stands) << wall.key;
    EXPECT_FALSE(wall.remedy) << wall.key;
  }
  const keeper::Confined less{.level = keeper::sandbox::Level::weak,
                              .features = {"user-namespace", "seccomp"},
                              .missing = {{"uid-range", "not root", "be root"},
                                          {"landlock", "no kernel", "a newer kernel"},
                                          {"memory", "not ours", "delegate it"}}};
  std::map<std::string, WallState> states;
  for (const Wall& wall : judge_sandbox(less)) {
    states[wall.key] = wall.state;
    EXPECT_EQ(wall.remedy.has_value(), wall.state != WallState::stands) << wall.key;
  }
  const std::map<std::string, WallState> wanted{{"sandbox", WallState::weak},
                                                {"sandbox_ids", WallState::weak},
                                                {"sandbox_landlock", WallState::weak},
                                                {"sandbox_limits", WallState::open},
                                                {"sandbox_seccomp", WallState::stands}};
  EXPECT_EQ(states, wanted);
}

TEST(Walls, AMachineWithoutSandboxesHasOneOpenWallAndClaimsNothingElse) {
  const auto walls = judge_sandbox(fail(Errc::sandbox_unavailable, "no namespaces", "allow them"));
  ASSERT_EQ(walls.size(), 1U);
  EXPECT_EQ(walls[0].state, WallState::open);
  EXPECT_EQ(walls[0].remedy, "allow them");
}

}  // namespace
}  // namespace berth::cli::doctor
