#include "cli/doctor/facts.hpp"

#include "cli/doctor/check.hpp"

#include "base/files.hpp"
#include "support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>

namespace berth::cli::doctor {
namespace {

TEST(VersionIn, FindsTheFirstVersionInWhatToolsPrint) {
  EXPECT_EQ(version_in("6.1.0-18-amd64"), (Version{6, 1}));
  EXPECT_EQ(version_in("OpenSSH_9.2p1 Debian-2+deb12u3, OpenSSL 3.0.11"), (Version{9, 2}));
  EXPECT_EQ(version_in("git version 2.39.5"), (Version{2, 39}));
  EXPECT_EQ(version_in("v18.19.0"), (Version{18, 19}));
  EXPECT_EQ(version_in("build 7 of 10.2"), (Version{10, 2}));
  EXPECT_EQ(version_in("none"), std::nullopt);
  EXPECT_EQ(version_in("7"), std::nullopt);
  EXPECT_EQ(version_in("7."), std::nullopt);
  EXPECT_EQ(version_in(""), std::nullopt);
  EXPECT_LT((Version{5, 13}), (Version{5, 14}));
}

constexpr auto unified = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
constexpr auto legacy = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n";
constexpr auto both =
    "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

TEST(CgroupsIn, TellsTheHierarchiesApart) {
  EXPECT_EQ(cgroups_in(unified), Cgroups::v2);
  EXPECT_EQ(cgroups_in(legacy), Cgroups::v1);
  EXPECT_EQ(cgroups_in(both), Cgroups::hybrid);
  EXPECT_EQ(cgroups_in("cgroup2 /cgroup tmpfs rw 0 0\n"), Cgroups::none);
  EXPECT_EQ(cgroups_in(""), Cgroups::none);
}

TEST(CheckCgroups, OfV1AreGoodForWhoeverTheyWereGivenTo) {
  using keeper::sandbox::Controller;
  keeper::sandbox::CgroupLayout layout{.remedy = "the remedy"};
  const auto give = [&](Controller one) { layout.legacy[static_cast<std::size_t>(one)] = "/c/u"; };
  give(Controller::memory);
  give(Controller::pids);
  const Finding partly = check_cgroups(layout, Cgroups::v1);
  EXPECT_EQ(partly.verdict, Verdict::warn);
  EXPECT_THAT(partly.says, testing::HasSubstr("not ours to divide: cpu;"));
  EXPECT_EQ(partly.remedy, "the remedy");
  give(Controller::cpu);
  const Finding all = check_cgroups(layout, Cgroups::v1);
  EXPECT_EQ(all.verdict, Verdict::ok);
  EXPECT_EQ(all.remedy, "");
}

TEST(ClockRemedy, IsACommandThatWorksHere) {
  using keeper::sandbox::InitSystem;
  EXPECT_THAT(clock_remedy(InitSystem::systemd), testing::HasSubstr("timedatectl"));
  EXPECT_THAT(clock_remedy(InitSystem::other), testing::Not(testing::HasSubstr("timedatectl")));
}

TEST(OsRelease, GivesValuesWithoutQuotes) {
  const auto* text = "NAME=Debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n";
  EXPECT_EQ(os_release_value(text, "PRETTY_NAME"), "Debian GNU/Linux 12");
  EXPECT_EQ(os_release_value(text, "NAME"), "Debian");
  EXPECT_EQ(os_release_value(text, "ID"), "");
}

TEST(BytesText, PicksTheUnit) {
  EXPECT_EQ(bytes_text(12), "12 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(5ULL << 30), "5.0 GiB");
}

class ServerChecks : public testing::Test {
 protected:
  ServerChecks() {
    machine_.settings.home = folder_;
    machine_.settings.master_key_file = folder_ + "/master.key";
    machine_.settings.database = "sqlite:" + folder_ + "/berth.db";
    machine_.server_url = "http://127.0.0.1:1";
  }
  void write(const std::string& name, std::string_view text, mode_t mode) {
    ASSERT_TRUE(replace_file(folder_ + "/" + name, text, mode));
    ASSERT_EQ(::chmod((folder_ + "/" + name).c_str(), mode), 0);
  }

  const tests::TemporaryFolder temporary_;
  const std::string& folder_ = temporary_.path();
  Machine machine_;
};

TEST_F(ServerChecks, AKeyFileThatOthersCanReadFailsWithTheCommandThatMendsIt) {
  EXPECT_EQ(check_master_key(machine_).verdict, Verdict::note);
  write("master.key", "x", 0600);
  EXPECT_EQ(check_master_key(machine_).verdict, Verdict::ok);
  write("master.key", "x", 0640);
  EXPECT_EQ(check_master_key(machine_).verdict, Verdict::fail);
  EXPECT_EQ(check_master_key(machine_).remedy, "chmod 600 " + folder_ + "/master.key");
}

TEST_F(ServerChecks, AFileThatIsNoDatabaseFails) {
  EXPECT_EQ(check_database(machine_).verdict, Verdict::note);
  write("berth.db", "SQLite format 3 and so on", 0600);
  EXPECT_EQ(check_database(machine_).verdict, Verdict::ok);
  write("berth.db", "something else", 0600);
  EXPECT_EQ(check_database(machine_).verdict, Verdict::fail);
}

TEST_F(ServerChecks, AHomeThatWouldHaveToBeMadeBelowAFileFails) {
  EXPECT_EQ(check_home(machine_).verdict, Verdict::ok);
  machine_.settings.home = folder_ + "/deeper/still";
  EXPECT_EQ(check_home(machine_).verdict, Verdict::ok);
  write("file", "", 0600);
  machine_.settings.home = folder_ + "/file";
  EXPECT_EQ(check_home(machine_).verdict, Verdict::fail);
}

TEST_F(ServerChecks, AHomeWhoseDiskLosesOutputFailsAndSaysSo) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  constexpr std::uint64_t reserve = std::uint64_t{64} << 20;
  const auto judge = [](const DiskRoom& room) { return judge_home("/home", room); };
  EXPECT_EQ(judge({.free_bytes = 2 * gib, .reserve_bytes = reserve}).verdict, Verdict::ok);
  EXPECT_EQ(judge({.free_bytes = reserve, .reserve_bytes = reserve}).verdict, Verdict::warn);
  for (const DiskRoom& full :
       {DiskRoom{.free_bytes = reserve - 1, .reserve_bytes = reserve},
        DiskRoom{.free_bytes = 2 * gib, .reserve_bytes = reserve, .takes_files = false}}) {
    EXPECT_FALSE(full.keeps_output());
    const Finding found = judge(full);
    EXPECT_EQ(found.verdict, Verdict::fail);
    EXPECT_TRUE(found.says.contains("output of commands is lost")) << found.says;
    EXPECT_NE(found.remedy, "");
  }
  EXPECT_FALSE(room_on_disk(folder_ + "/nothing"));
}

TEST_F(ServerChecks, APortThatSomethingElseHoldsFails) {
  const Fd holder{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(holder.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(holder.get(), 1), 0);
  socklen_t size = sizeof address;
  ::getsockname(holder.get(), reinterpret_cast<sockaddr*>(&address), &size);
  machine_.settings.listen = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  EXPECT_EQ(check_listen(machine_).verdict, Verdict::fail);
  machine_.settings.listen = "127.0.0.1:0";
  EXPECT_EQ(check_listen(machine_).verdict, Verdict::note);
}

TEST_F(ServerChecks, ATlsFileThatIsNoPemFails) {
  EXPECT_EQ(check_tls(machine_).verdict, Verdict::note);
  machine_.settings.tls_cert = folder_ + "/cert.pem";
  machine_.settings.tls_key = folder_ + "/key.pem";
  EXPECT_EQ(check_tls(machine_).verdict, Verdict::fail);
  write("cert.pem", "-----BEGIN CERTIFICATE-----", 0644);
  write("key.pem", "der", 0600);
  EXPECT_EQ(check_tls(machine_).verdict, Verdict::fail);
  write("key.pem", "-----BEGIN PRIVATE KEY-----", 0600);
  EXPECT_EQ(check_tls(machine_).verdict, Verdict::ok);
  write("key.pem", "-----BEGIN PRIVATE KEY-----", 0644);
  EXPECT_EQ(check_tls(machine_).verdict, Verdict::warn);
}

TEST(KeptAllowances, EachCompanyThatKeepsSomethingIsListedWithHowToForbidIt) {
  const auto companies = parse_json(
      R"([{"name":"Old","keptAllowances":["host_network","local"]},{"name":"New","keptAllowances":[]},
          {"name":"Odd"}])");
  const std::vector<Finding> found = judge_kept(companies->as_array());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, Verdict::note);
  EXPECT_EQ(found[0].says, "'Old' kept from before the upgrade: host-network, local");
  EXPECT_TRUE(found[0].remedy.starts_with("berth company forbid 'Old' host-network local"))
      << found[0].remedy;
}

TEST_F(ServerChecks, AServerOfRootThatTrustsEveryLocalUserIsWarnedOf) {
  const Finding found = judge_trust(Mode::local_trusted, TrustedUsers::all, 0);
  EXPECT_EQ(found.verdict, Verdict::warn);
  EXPECT_EQ(found.remedy, root_remedy);
  EXPECT_EQ(judge_trust(Mode::local_trusted, TrustedUsers::own, 0).verdict, Verdict::note);
  EXPECT_EQ(judge_trust(Mode::local_trusted, TrustedUsers::all, 1000).verdict, Verdict::note);
  EXPECT_EQ(judge_trust(Mode::authenticated, TrustedUsers::all, 0).verdict, Verdict::ok);
}

TEST_F(ServerChecks, TheWholeExaminationEndsAndEveryFailureHasARemedy) {
  machine_.settings.listen = "127.0.0.1:0";
  const std::vector<Finding> findings = examine(machine_);
  EXPECT_GE(findings.size(), 19u);
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.says.empty()) << finding.check;
    if (finding.verdict == Verdict::fail || finding.verdict == Verdict::warn) {
      EXPECT_FALSE(finding.remedy.empty()) << finding.check;
    }
  }
}

}  // namespace
}  // namespace berth::cli::doctor
