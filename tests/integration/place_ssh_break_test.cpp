#include "base/files.hpp"
#include "integration/place_ssh_fixture.hpp"

#include <sys/stat.h>

#include <csignal>
#include <filesystem>

// What breaks on the way: connections, hosts, servers.
namespace berth::place_test {
namespace {

using namespace places;

class SshBreakTest : public SshTest {
 protected:
  // Prints a number every few milliseconds, and a last line when a file appears.
  Command counting() {
    return shell("i=0; while [ ! -e enough ]; do i=$((i+1)); echo $i; sleep 0.01; done; echo end");
  }
  void say_enough() { ASSERT_TRUE(create_file(sshd().workspace() + "/enough", "", 0600)); }
  static void expect_every_number_once(const std::string& out) {
    std::string wanted;
    for (int i = 1; wanted.size() + 4 < out.size(); ++i) wanted += std::to_string(i) + "\n";
    EXPECT_EQ(out, wanted + "end\n");
  }
};
INSTANTIATE_TEST_SUITE_P(Ssh, SshBreakTest,
                         testing::ValuesIn(places_if_there_is_an_sshd(&make_ssh_ground)));
INSTANTIATE_TEST_SUITE_P(Shell, SshBreakTest,
                         testing::ValuesIn(places_if_there_is_an_sshd(&make_shell_place)));

TEST_P(SshBreakTest, WhenSshdIsKilledAndComesBackNothingIsLostOrDoubled) {
  const PlaceRef lease = new_lease();
  const Command count = counting();
  ASSERT_TRUE(await(commands().start(lease, count)));
  Collected output;
  const auto following = begin(commands().follow(lease, count.exec_id, 0, output));
  ASSERT_TRUE(run_until([&] { return output.out.contains("20\n"); }));
  sshd().kill_all();
  const std::size_t before = output.out.size();
  ASSERT_TRUE(run_until([&, until = std::chrono::steady_clock::now() + 500ms] {
    return std::chrono::steady_clock::now() > until;
  }));
  EXPECT_FALSE(following->result.has_value()) << "given up at once";
  sshd().start();
  ASSERT_TRUE(run_until([&] { return output.out.size() > before + 100; }));
  say_enough();
  const auto ended = finish(following);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->exit_code, 0);
  EXPECT_FALSE(output.has_gaps);
  expect_every_number_once(output.out);
  release(lease);
}

TEST_P(SshBreakTest, WhenTheConnectionIsKilledNothingIsLostOrDoubled) {
  const PlaceRef lease = new_lease();
  const Command count = counting();
  ASSERT_TRUE(await(commands().start(lease, count)));
  Collected output;
  const auto following = begin(commands().follow(lease, count.exec_id, 0, output));
  for (int i = 1; i <= 3; ++i) {
    const std::size_t before = output.out.size();
    ASSERT_TRUE(run_until([&] { return output.out.size() > before + 50; }));
    for (const pid_t pid : ssh().master_pids()) ::kill(pid, SIGKILL);
  }
  say_enough();
  const auto ended = finish(following);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_FALSE(output.has_gaps);
  expect_every_number_once(output.out);
  release(lease);
}

TEST_P(SshBreakTest, EveryVerbWorksOverAConnectionThatJustBroke) {
  const auto break_it = [&] {
    for (const pid_t pid : ssh().master_pids()) ::kill(pid, SIGKILL);
  };
  break_it();
  const PlaceRef lease = new_lease();
  break_it();
  ASSERT_TRUE(await(commands().realize(lease, std::optional{sshd().workspace()})));
  break_it();
  const Command count = counting();
  ASSERT_TRUE(await(commands().start(lease, count)));
  break_it();
  ASSERT_TRUE(await(commands().renew(lease, 60'000)));
  break_it();
  ASSERT_TRUE(await(commands().cancel(lease, count.exec_id, 100)));
  Collected output;
  const auto ended = await(commands().follow(lease, count.exec_id, 0, output));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::stopped);
  break_it();
  release(lease);
}

TEST_P(SshBreakTest, AHostThatStaysAwayIsGivenUpAndFollowedAgainWhenItIsBack) {
  ssh::Options impatient = ssh_ground().options;
  impatient.reattach_limit = 1s;
  impatient.connect_limit = 1s;
  use(impatient);
  const PlaceRef lease = new_lease();
  const Command count = counting();
  ASSERT_TRUE(await(commands().start(lease, count)));
  Collected output;
  const auto following = begin(commands().follow(lease, count.exec_id, 0, output));
  ASSERT_TRUE(run_until([&] { return output.out.contains("10\n"); }));
  sshd().kill_all();
  const auto given_up = finish(following);
  ASSERT_FALSE(given_up);
  EXPECT_EQ(given_up.error().code, Errc::ssh_unreachable) << given_up.error().message;
  const auto released = await(place().release(lease, core::LeaseEvent::release_failed));
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().code, Errc::ssh_unreachable);
  sshd().start();
  say_enough();
  Collected rest;
  const auto ended = await(commands().follow(lease, count.exec_id, output.ends.back(), rest));
  ASSERT_TRUE(ended) << ended.error().message;
  expect_every_number_once(output.out + rest.out);
  release(lease);
}

TEST_P(SshBreakTest, AConnectionEndsWithTheServerThatMadeIt) {
  // The death test forks its own server.
  GTEST_FLAG_SET(death_test_style, "fast");
  ssh_ground().options.control_root = ssh_ground().control_root() + "d";
  const std::string root = ssh_ground().options.control_root;
  const AcquireRequest wanted = request();
  EXPECT_EXIT(
      {
        asio::io_context loop;
        const auto server = ssh_ground().make_place(loop.get_executor(), pool_);
        bool acquired = false;
        asio::co_spawn(loop, server->acquire(wanted),
                       [&](const std::exception_ptr&, const Result<Acquired>& result) {
                         acquired = result.has_value();
                         loop.stop();
                       });
        loop.run();
        if (acquired) ::kill(::getpid(), SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
  EXPECT_TRUE(eventually([&] { return tests::processes_with(root).empty(); }));
  EXPECT_EQ(names_in(root)->size(), 1U) << "the folder of the killed server";
  restart();
  EXPECT_EQ(names_in(root)->size(), 1U) << "the folder of the new server alone";
  release(wanted.lease);
}

TEST_P(SshBreakTest, WhatAKilledServerLeftOfItsConnectionsIsEnded) {
  const std::string folder = ssh_ground().control_root() + "/dead";
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  tests::Spawned master{
      {"/usr/bin/ssh", "-F", "none", "-N", "-o", "BatchMode=yes", "-o", "ControlMaster=yes", "-o",
       "ControlPath=" + folder + "/1", "-o", "StrictHostKeyChecking=no", "-o",
       "UserKnownHostsFile=/dev/null", "-o", "IdentityFile=" + sshd().key_file(), "-p",
       std::to_string(sshd().port()), sshd().user() + "@127.0.0.1"},
      {}};
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(folder + "/1"); }));
  restart();
  EXPECT_TRUE(eventually([&] { return !is_running(master.pid()); }));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_P(SshBreakTest, NoSecretIsAmongTheArgumentsOfAnyProcess) {
  AcquireRequest request = this->request();
  const std::string key_part = sshd().private_key().substr(80, 40);
  Command command = shell("cat; sleep 0.5; echo $TOKEN");
  command.environment.emplace("TOKEN", Secret{"tok-4f1d7c9e2b"});
  command.input = StdinBytes{Secret{"stdin-8a6b3c\n"}};
  bool seen = false;
  const auto look = [&] {
    for (const char* secret : {"tok-4f1d7c9e2b", "stdin-8a6b3c"}) {
      seen = seen || !tests::processes_with(secret).empty();
    }
    seen = seen || !tests::processes_with(key_part).empty();
    return false;
  };
  const auto acquiring = begin(place().acquire(request));
  run_until([&] { return look() || acquiring->result; });
  ASSERT_TRUE(*acquiring->result);
  request.lease.metadata = (*acquiring->result)->metadata;
  const auto starting = begin(commands().start(request.lease, command));
  run_until([&] { return look() || starting->result; });
  ASSERT_TRUE(*starting->result) << starting->result->error().message;
  Collected output;
  const auto following = begin(commands().follow(request.lease, command.exec_id, 0, output));
  run_until([&] { return look() || following->result; });
  EXPECT_FALSE(seen);
  EXPECT_EQ(output.out, "stdin-8a6b3c\ntok-4f1d7c9e2b\n");
  release(request.lease);
}

}  // namespace
}  // namespace berth::place_test
