#include "integration/sandbox_fixture.hpp"

#include "keeper/holder/process_tree.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

// How a sandbox begins and ends, and what is visible outside.
namespace berth::keeper_test {
namespace {

using keeper::Outcome;
using keeper::sandbox::Level;
using keeper::sandbox::Plan;

class SandboxLife : public SandboxTest {
 protected:
  // Processes that end neither by themselves nor on request, some of them detached.
  keeper::Exec stubborn() {
    return inside(
        "trap '' TERM HUP INT; for i in 1 2 3 4 5 6 7 8; do "
        "setsid sh -c \"trap '' TERM HUP INT; while :; do sleep 1; done\" & done; "
        "echo ready; while :; do sleep 1; done");
  }
};
INSTANTIATE_TEST_SUITE_P(By, SandboxLife, testing::Values(Maker::root, Maker::user),
                         [](const auto& by) {
                           return by.param == Maker::root ? "Root" : "OrdinaryUser";
                         });

// These tests need control groups or several user ids, which an ordinary user does not have.
class SandboxLifeByRoot : public SandboxLife {};
INSTANTIATE_TEST_SUITE_P(Made, SandboxLifeByRoot, testing::Values(Maker::root));
// These tests need a sandbox without control groups.
class SandboxLifeByUser : public SandboxLife {};
INSTANTIATE_TEST_SUITE_P(Made, SandboxLifeByUser, testing::Values(Maker::user));

#define CONFINE(...)    \
  confine(__VA_ARGS__); \
  if (IsSkipped() || HasFatalFailure()) return

TEST_P(SandboxLife, SaysHowStrongItIs) {
  CONFINE();
  const bool is_strong = confined().level == Level::strong;
  EXPECT_TRUE(is_by_root() || !is_strong);
  for (const char* feature : {"user-namespace", "pid-namespace", "seccomp", "no-new-privileges"}) {
    EXPECT_THAT(confined().features, testing::Contains(feature));
  }
  for (const keeper::Missing& missing : confined().missing) {
    EXPECT_FALSE(missing.reason.empty()) << missing.feature;
  }
  EXPECT_TRUE(is_running(confined().init_pid));
}

TEST_P(SandboxLife, ThatCouldNotBeMadeLetsNoCommandRunWithoutIt) {
  const Plan impossible{.base = keeper::sandbox::Base::layers, .layers = {"/no/such/layer"}};
  ASSERT_FALSE(client().confine(impossible));
  const auto refused = client().exec(inside("echo outside"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::sandbox_setup_failed) << refused.error().message;
  confine();
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_EQ(said("echo inside"), "inside\n");
}

TEST_P(SandboxLife, ThatWouldBeTooWeakIsNotMade) {
  Plan plan{.min_level = Level::standard};
  plan.allow(keeper::sandbox::AllowHostNetwork{});
  const auto made = client().confine(plan);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::isolation_too_weak) << made.error().message;
  EXPECT_FALSE(made.error().remedy.empty());
  EXPECT_TRUE(keeper::descendants_of(keeper_pid()).empty());
}

TEST_P(SandboxLife, ThatCannotBeMadeSaysWhereAndLeavesNothing) {
  const std::string missing = root() + "/missing";
  const auto made = client().confine({.layers = {missing}});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::sandbox_setup_failed);
  EXPECT_TRUE(made.error().message.contains("layer '" + missing)) << made.error().message;
  EXPECT_TRUE(keeper::descendants_of(keeper_pid()).empty());
  // And the next attempt works like the first.
  CONFINE();
  EXPECT_EQ(said("echo here"), "here\n");
}

TEST_P(SandboxLife, IsMadeOnceAndBeforeAnyCommand) {
  CONFINE();
  const auto again = client().confine({});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::conflict);
}

TEST_P(SandboxLife, IsNotMadeAroundCommandsThatRunWithout) {
  keeper::Exec exec = inside("sleep 100");
  ASSERT_TRUE(client().exec(exec));
  const auto late = client().confine({});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::conflict);
}

TEST_P(SandboxLife, EndsWithItsStubbornProcesses) {
  CONFINE();
  const keeper::Exec exec = stubborn();
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\n");
  const pid_t init = confined().init_pid;
  ASSERT_TRUE(client().stop(0ms));
  EXPECT_FALSE(is_running(init));
  ASSERT_TRUE(wait_for_keeper());
}

TEST_P(SandboxLife, DiesWithItsKeeper) {
  CONFINE();
  const keeper::Exec exec = stubborn();
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\n");
  std::vector<pid_t> tree = keeper::descendants_of(keeper_pid());
  EXPECT_GT(tree.size(), 8U);
  ::kill(keeper_pid(), SIGKILL);
  ASSERT_TRUE(wait_for_keeper());
  for (const pid_t pid : tree) {
    EXPECT_TRUE(eventually([&] { return !is_running(pid); })) << pid;
  }
}

TEST_P(SandboxLife, WhosePidOneIsKilledIsLost) {
  CONFINE();
  const keeper::Exec exec = stubborn();
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\n");
  ::kill(confined().init_pid, SIGKILL);
  const auto ended = client().wait(exec.exec_id);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, Outcome::lost);
  const auto refused = [&] {
    const auto next = client().run(inside("true"));
    return !next && next.error().code == Errc::process_lost;
  };
  EXPECT_TRUE(eventually(refused));
}

TEST_P(SandboxLife, GivesItsRootAndWhatWasWrittenToIt) {
  CONFINE({.directories = {"/made"}});
  said("echo text > /made/file");
  for (const keeper::Part part : {keeper::Part::root, keeper::Part::upper}) {
    const auto root = client().root(part);
    ASSERT_TRUE(root) << root.error().message;
    struct stat file{};
    EXPECT_EQ(::fstatat(root->get(), "made/file", &file, 0), 0);
    EXPECT_EQ(file.st_size, 5);
  }
}

TEST_P(SandboxLifeByRoot, WhatWasWrittenHasTheIdsOfTheSandboxAlsoOutside) {
  CONFINE({.directories = {"/made"}, .user = {.uid = 0, .gid = 0}});
  said("touch /made/file; chown 7:8 /made/file");
  const auto upper = client().root(keeper::Part::upper);
  ASSERT_TRUE(upper) << upper.error().message;
  struct stat file{};
  ASSERT_EQ(::fstatat(upper->get(), "made/file", &file, 0), 0);
  EXPECT_EQ(file.st_uid, 7U);
  EXPECT_EQ(file.st_gid, 8U);
}

TEST_P(SandboxLife, GivesTheSameListenerAgainAndItIsReachedFromInside) {
  CONFINE();
  const auto first = client().listener(8085);
  ASSERT_TRUE(first) << first.error().message;
  auto second_client = connect();
  const auto second = second_client.listener(8085);
  ASSERT_TRUE(second) << second.error().message;
  const keeper::Exec exec =
      command({"bash", "-c", "cd /; exec 3<>/dev/tcp/127.0.0.1/8085; echo asked >&3; cat <&3"});
  keeper::Exec asking = exec;
  asking.cwd = "/";
  ASSERT_TRUE(client().exec(asking));
  pollfd wanted{second->get(), POLLIN, 0};
  ASSERT_EQ(::poll(&wanted, 1, 20'000), 1);
  const Fd accepted{::accept4(second->get(), nullptr, nullptr, SOCK_CLOEXEC)};
  ASSERT_TRUE(accepted);
  std::string got(6, '\0');
  EXPECT_EQ(::recv(accepted.get(), got.data(), got.size(), MSG_WAITALL), 6);
  EXPECT_EQ(got, "asked\n");
  EXPECT_EQ(::send(accepted.get(), "answered\n", 9, MSG_NOSIGNAL), 9);
  ::shutdown(accepted.get(), SHUT_RDWR);
  ASSERT_TRUE(client().wait(asking.exec_id));
  EXPECT_EQ(output_of(asking.exec_id).out, "answered\n");
}

TEST_P(SandboxLife, DialsAPortOfTheLoopbackInsideAndNoneOfTheHost) {
  CONFINE();
  keeper::Exec listening = command({"python3", "-c",
                                    "import socket\n"
                                    "s = socket.create_server(('127.0.0.1', 8086))\n"
                                    "print('listening', flush=True)\n"
                                    "c, _ = s.accept(); c.sendall(b'got ' + c.recv(4))"});
  listening.cwd = "/";
  ASSERT_TRUE(client().exec(listening));
  std::string said;
  const auto until_it_listens = [&](std::uint64_t, std::string_view bytes) {
    said += bytes;
    return !said.contains("listening");
  };
  ASSERT_TRUE(connect().attach(listening.exec_id, 0, until_it_listens));
  const auto socket = client().dial(8086, keeper::LoopbackFamily::v4);
  ASSERT_TRUE(socket) << socket.error().message;
  pollfd wanted{socket->get(), POLLOUT, 0};
  ASSERT_EQ(::poll(&wanted, 1, 20'000), 1);
  EXPECT_EQ(::send(socket->get(), "ping", 4, MSG_NOSIGNAL), 4);
  wanted.events = POLLIN;
  ASSERT_EQ(::poll(&wanted, 1, 20'000), 1);
  std::string got(16, '\0');
  got.resize(static_cast<std::size_t>(
      std::max<ssize_t>(::recv(socket->get(), got.data(), got.size(), 0), 0)));
  EXPECT_EQ(got, "got ping");

  // A port that only the host has.
  const Fd of_host{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(of_host.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(of_host.get(), 1), 0);
  ::getsockname(of_host.get(), reinterpret_cast<sockaddr*>(&address), &size);
  const auto refused = client().dial(ntohs(address.sin_port), keeper::LoopbackFamily::v4);
  int error_number = 0;
  if (refused) {
    pollfd ended{refused->get(), POLLOUT, 0};
    ASSERT_EQ(::poll(&ended, 1, 20'000), 1);
    size = sizeof error_number;
    ::getsockopt(refused->get(), SOL_SOCKET, SO_ERROR, &error_number, &size);
  }
  EXPECT_TRUE(!refused || error_number == ECONNREFUSED) << error_number;
  EXPECT_FALSE(client().dial(0, keeper::LoopbackFamily::v4));
}

TEST_P(SandboxLife, WithTheNetworkOfTheHostItDialsNothing) {
  Plan plan;
  plan.allow(keeper::sandbox::AllowHostNetwork{});
  CONFINE(plan);
  const auto refused = client().dial(22, keeper::LoopbackFamily::v4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::execution_unsupported);
}

TEST_P(SandboxLife, WithoutASandboxThereIsNoRootAndNoListener) {
  const auto root = client().root();
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().code, Errc::conflict);
  EXPECT_FALSE(client().listener(8085));
}

TEST_P(SandboxLife, TellsWhoRanOutOfMemory) {
  CONFINE({.limits = {.memory_bytes = 64 << 20}});
  if (!confined().missing.empty() && !is_by_root()) {
    GTEST_SKIP() << "no control group for an ordinary user";
  }
  keeper::Exec exec = command({"tail", "/dev/zero"});
  exec.cwd = "/";
  const keeper::Ended ended = run(exec);
  EXPECT_EQ(ended.outcome, Outcome::signaled);
  EXPECT_EQ(ended.error_code, "out_of_memory");
  EXPECT_GE(ended.oom_kills, 1U);
  EXPECT_EQ(said("echo still here"), "still here\n");
}

TEST_P(SandboxLife, CountsWhatItUses) {
  CONFINE();
  const keeper::Exec exec = inside("echo ready; while :; do :; done");
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\n");
  const auto busy = [&] {
    const auto usage = client().stats("");
    return usage && usage->cpu_us > 10'000 && usage->processes == 1;
  };
  EXPECT_TRUE(eventually(busy));
}

TEST_P(SandboxLifeByRoot, StandsStillWhileItIsFrozen) {
  CONFINE();
  const keeper::Exec exec = inside("i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done");
  ASSERT_TRUE(client().exec(exec));
  ASSERT_TRUE(eventually([&] { return output_of(exec.exec_id).out.size() > 10; }));
  const auto frozen = client().freeze();
  ASSERT_TRUE(frozen) << frozen.error().message;
  ASSERT_TRUE(client().list());  // what was in the pipe reaches the file after another iteration or
                                 // two
  ASSERT_TRUE(client().list());
  const std::size_t before = output_of(exec.exec_id).out.size();
  ::poll(nullptr, 0, 200);  // time for it to run, which it must not
  EXPECT_EQ(output_of(exec.exec_id).out.size(), before);
  ASSERT_TRUE(client().thaw());
  EXPECT_TRUE(eventually([&] { return output_of(exec.exec_id).out.size() > before; }));
}

TEST_P(SandboxLifeByRoot, EndsAlsoWhileItIsFrozen) {
  CONFINE();
  const keeper::Exec exec = stubborn();
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\n");
  ASSERT_TRUE(client().freeze());
  ASSERT_TRUE(client().stop(0ms));
  EXPECT_FALSE(is_running(confined().init_pid));
  ASSERT_TRUE(wait_for_keeper());
}

TEST_P(SandboxLifeByRoot, FrozenStillEndsWhoeverIsPastItsTimeOrCancelled) {
  CONFINE();
  keeper::Exec late = stubborn();
  late.deadline_ms = 300;
  const keeper::Exec cancelled = stubborn();
  const keeper::Exec counting = inside("while :; do echo .; sleep 0.01; done");
  for (const keeper::Exec& exec : {late, cancelled}) {
    ASSERT_TRUE(client().exec(exec));
    wait_for_output(exec.exec_id, "ready\n");
  }
  ASSERT_TRUE(client().exec(counting));
  ASSERT_TRUE(eventually([&] { return output_of(counting.exec_id).out.size() > 4; }));
  ASSERT_TRUE(client().freeze());
  const auto ended = client().wait(late.exec_id);
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->outcome, keeper::Outcome::timed_out);
  const auto stopped = client().cancel(cancelled.exec_id, 60s);
  ASSERT_TRUE(stopped) << stopped.error().message;
  EXPECT_EQ(stopped->outcome, keeper::Outcome::stopped);
  // The others are frozen again.
  ASSERT_TRUE(client().list());
  ASSERT_TRUE(client().list());
  const std::size_t before = output_of(counting.exec_id).out.size();
  ::poll(nullptr, 0, 200);
  EXPECT_EQ(output_of(counting.exec_id).out.size(), before);
  ASSERT_TRUE(client().thaw());
  EXPECT_TRUE(eventually([&] { return output_of(counting.exec_id).out.size() > before; }));
}

TEST_P(SandboxLifeByUser, WithoutAControlGroupIsNotFrozenAndGoesOn) {
  CONFINE();
  const auto frozen = client().freeze();
  ASSERT_FALSE(frozen) << "nobody gave this user a control group";
  EXPECT_EQ(frozen.error().code, Errc::execution_unsupported) << frozen.error().message;
  EXPECT_FALSE(frozen.error().remedy.empty());
  EXPECT_TRUE(client().listener(4000)) << "nobody stands still";
}

TEST_P(SandboxLife, ListensOnlyOnPortsThatAreFree) {
  CONFINE();
  EXPECT_FALSE(client().listener(0));
  const auto low = client().listener(80);
  ASSERT_FALSE(low);
  EXPECT_EQ(low.error().code, Errc::port_unreachable) << low.error().message;
}

}  // namespace
}  // namespace berth::keeper_test
