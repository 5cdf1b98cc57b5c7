#include "integration/keeper_fixture.hpp"

#include "base/files.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

// The keeper itself: how it is found, how it ends, and what it survives.
namespace berth::keeper_test {
namespace {

using keeper::Exec;
using keeper::Life;
using keeper::Outcome;

class KeeperLife : public KeeperTest {
 protected:
  keeper::FoundKeeper look() {
    auto found = keeper::look_at_keeper(folder());
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    return found.value_or(keeper::FoundKeeper{});
  }
};

TEST_F(KeeperLife, IsFoundByItsFolderWhileItLivesAndAfterItsEnd) {
  const Exec exec = shell("echo kept");
  run(exec);
  keeper::FoundKeeper found = look();
  EXPECT_EQ(found.life, Life::alive);
  EXPECT_EQ(found.id, "k");
  EXPECT_EQ(found.identity.pid, keeper_pid());
  ASSERT_TRUE(client().stop(0ms));
  ASSERT_TRUE(wait_for_keeper());
  found = look();
  EXPECT_EQ(found.life, Life::ended);
  EXPECT_EQ(found.end_record.outcome, Outcome::stopped);
  EXPECT_EQ(keeper::read_exit(folder(), exec.exec_id)->code, 0);
  EXPECT_EQ(output_of(exec.exec_id).out, "kept\n");
}

TEST_F(KeeperLife, IsNotTakenForAnotherProcessWithItsPid) {
  ::kill(keeper_pid(), SIGKILL);
  ASSERT_TRUE(wait_for_keeper());
  const auto card = read_file(folder() + "/keeper", 4096);
  ASSERT_TRUE(card);
  const std::string pid = "pid " + std::to_string(keeper_pid()) + "\n";
  std::string forged = *card;
  forged.replace(forged.find(pid), pid.size(), "pid " + std::to_string(::getpid()) + "\n");
  ASSERT_TRUE(replace_file(folder() + "/keeper", forged, 0600));
  EXPECT_EQ(look().life, Life::dead);
}

TEST_F(KeeperLife, StopEndsEveryCommandAndAnswersWhenNothingIsLeft) {
  std::vector<Exec> execs;
  std::vector<pid_t> pids;
  for (int i = 0; i < 5; ++i) {
    execs.push_back(shell("trap '' TERM; while :; do sleep 1; done"));
    const auto started = client().exec(execs.back());
    ASSERT_TRUE(started);
    pids.push_back(started->pid);
  }
  ASSERT_TRUE(client().stop(50ms));
  for (const pid_t pid : pids) EXPECT_FALSE(is_running(pid));
  for (const Exec& exec : execs) {
    EXPECT_EQ(keeper::read_exit(folder(), exec.exec_id)->outcome, Outcome::stopped);
  }
  const auto status = wait_for_keeper();
  ASSERT_TRUE(status);
  EXPECT_EQ(*status, 0);
}

TEST_F(KeeperLife, ThatIsNotRenewedLapsesWithItsTree) {
  const Exec exec = command({"sleep", "100"});
  const auto started = client().exec(exec);
  ASSERT_TRUE(started);
  ASSERT_TRUE(client().renew(100ms));
  ASSERT_TRUE(wait_for_keeper());
  EXPECT_FALSE(is_running(started->pid));
  EXPECT_EQ(look().end_record.outcome, Outcome::lapsed);
  EXPECT_EQ(keeper::read_exit(folder(), exec.exec_id)->outcome, Outcome::lapsed);
}

TEST_F(KeeperLife, ThatIsRenewedLivesPastItsOldDeadline) {
  ASSERT_TRUE(client().renew(300ms));
  ASSERT_TRUE(client().renew(60s));
  EXPECT_FALSE(wait_for_keeper(500ms));
  EXPECT_TRUE(client().list());
}

TEST_F(KeeperLife, IsRenewedForASensibleTimeOnly) {
  EXPECT_FALSE(client().renew(0ms));
  EXPECT_FALSE(client().renew(std::chrono::hours{24 * 365}));
}

TEST_F(KeeperLife, SurvivesTheDeathOfAllClients) {
  const Exec exec = shell("read x; echo after");
  Exec open = exec;
  open.stdin_kind = keeper::Stdin::pipe;
  ASSERT_TRUE(client().exec(open));
  client() = connect();  // the first connection, which the keeper started with, is closed
  {
    const keeper::KeeperClient brief = connect();
  }
  ASSERT_TRUE(client().write(open.exec_id, "\n"));
  ASSERT_TRUE(client().wait(open.exec_id));
  EXPECT_EQ(output_of(open.exec_id).out, "after\n");
}

TEST_F(KeeperLife, SurvivesSighupAndSigpipe) {
  ::kill(keeper_pid(), SIGHUP);
  ::kill(keeper_pid(), SIGPIPE);
  EXPECT_EQ(run(command({"true"})).code, 0);
}

TEST_F(KeeperLife, SigtermStopsItWithItsTree) {
  const auto started = client().exec(command({"sleep", "100"}));
  ASSERT_TRUE(started);
  ::kill(keeper_pid(), SIGTERM);
  const auto status = wait_for_keeper();
  ASSERT_TRUE(status);
  EXPECT_EQ(*status, 0);
  EXPECT_FALSE(is_running(started->pid));
  EXPECT_EQ(look().end_record.reason, "signal 15");
}

TEST_F(KeeperLife, StopsWhenItsFolderIsRemoved) {
  const auto started = client().exec(command({"sleep", "100"}));
  ASSERT_TRUE(started);
  std::filesystem::remove_all(folder());
  EXPECT_TRUE(wait_for_keeper());
  EXPECT_FALSE(is_running(started->pid));
}

TEST_F(KeeperLife, WhileStoppingTakesNoNewCommand) {
  const Exec exec = shell("trap '' TERM; echo ready; while :; do sleep 1; done");
  ASSERT_TRUE(client().exec(exec));
  wait_for_output(exec.exec_id, "ready\n");
  keeper::KeeperClient other = connect();
  other.send(keeper::Stop{.grace_ms = 1000});
  ASSERT_TRUE(other.list());
  const auto refused = client().exec(command({"true"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::keeper_stopping);
}

TEST_F(KeeperLife, ASecondKeeperInTheSameFolderIsRefused) {
  auto second = keeper::spawn_keeper({.program = BERTH_KEEPER, .folder = folder()});
  ASSERT_TRUE(second);
  int status = 0;
  ASSERT_EQ(::waitpid(second->pid, &status, 0), second->pid);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(client().list());
  std::filesystem::remove(folder() + "/log");
}

TEST_F(KeeperLife, HoldsNoMoreCommandsThanItsLimit) {
  for (std::size_t i = 0; i < keeper::limits::live_execs; ++i) {
    client().send(command({"sleep", "100"}));
  }
  const auto listing = client().list();
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->live.size(), keeper::limits::live_execs);
  const auto refused = client().exec(command({"true"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::keeper_full);
  EXPECT_TRUE(client().stop(0ms));
}

TEST_F(KeeperLife, IsReachedThroughAFolderOfAnyDepth) {
  std::string deep = root();
  for (int i = 0; i < 20; ++i) deep += "/a-rather-long-name";
  ASSERT_TRUE(make_directories(deep, 0700));
  auto spawned = keeper::spawn_keeper({.program = BERTH_KEEPER, .folder = deep + "/k"});
  ASSERT_TRUE(spawned);
  keeper::KeeperClient born{std::move(spawned->control)};
  ASSERT_TRUE(born.list());
  auto socket = keeper::connect_keeper(deep + "/k");
  ASSERT_TRUE(socket) << socket.error().message;
  keeper::KeeperClient later{*std::move(socket)};
  EXPECT_TRUE(later.stop(0ms));
}

TEST_F(KeeperLife, AFolderWithoutKeeperIsSaid) {
  const auto nobody = keeper::connect_keeper(root());
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Errc::keeper_unreachable);
}

TEST_F(KeeperLife, AClientThatSpeaksNonsenseIsSentAwayAndOthersStay) {
  auto socket = keeper::connect_keeper(folder());
  ASSERT_TRUE(socket);
  const std::string nonsense(1000, '\xee');
  ASSERT_EQ(::send(socket->get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL), 1000);
  std::array<char, 4096> answer{};
  const ssize_t got = ::recv(socket->get(), answer.data(), answer.size(), 0);
  EXPECT_GT(got, 0);
  EXPECT_LE(::recv(socket->get(), answer.data(), answer.size(), 0), 0);
  EXPECT_TRUE(client().list());
}

TEST_F(KeeperLife, AClientMustGreetWithTheSameVersion) {
  auto socket = keeper::connect_keeper(folder());
  ASSERT_TRUE(socket);
  std::string bytes;
  keeper::append_frame(bytes, 0, keeper::Hello{.version = 99});
  ASSERT_GT(::send(socket->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
  keeper::KeeperClient wrong{*std::move(socket)};
  const auto refused = wrong.list();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::keeper_protocol);
}

TEST_F(KeeperLife, AWardenOnItsWayOutIsNotCountedAsLeftBehind) {
  for (int i = 0; i < 30; ++i) {
    const std::string place = root() + "/k" + std::to_string(i);
    auto spawned = keeper::spawn_keeper({.program = BERTH_KEEPER, .folder = place});
    ASSERT_TRUE(spawned) << spawned.error().message;
    keeper::KeeperClient held{std::move(spawned->control)};
    for (int n = 0; n < 3; ++n) ASSERT_TRUE(held.exec(shell("exec sleep 100")));
    ASSERT_TRUE(held.stop(0ms));
    const auto found = keeper::look_at_keeper(place);
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->end_record.left_behind, 0U) << "of keeper " << i;
  }
}

// The protocol over a pair of pipes, as over SSH.
TEST_F(KeeperLife, IsStartedAndFoundAgainOverStdio) {
  const auto serve = [&](keeper::OpenHow how) {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    Fd ours{pair[0]};
    const Fd theirs{pair[1]};
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(theirs.get(), STDIN_FILENO);
      ::dup2(theirs.get(), STDOUT_FILENO);
      ::execl(BERTH_KEEPER, BERTH_KEEPER, "serve-stdio", (root() + "/remote").c_str(), nullptr);
      ::_exit(127);
    }
    std::string bytes;
    keeper::append_frame(bytes, 7, keeper::Open{.keeper_id = "r", .how = how});
    EXPECT_GT(::send(ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    keeper::FrameReader reader;
    Result<std::optional<keeper::Frame>> frame = std::nullopt;
    while (frame && !*frame) {
      char byte = 0;
      if (::recv(ours.get(), &byte, 1, 0) != 1) break;
      reader.feed({&byte, 1});
      frame = reader.next();
    }
    EXPECT_TRUE(frame && *frame && (*frame)->verb == keeper::Verb::done);
    return keeper::KeeperClient{std::move(ours)};
  };
  const Exec exec = shell("read x; echo $x");
  Exec open = exec;
  open.stdin_kind = keeper::Stdin::pipe;
  {
    keeper::KeeperClient first = serve(keeper::OpenHow::start);
    ASSERT_TRUE(first.exec(open));
  }
  keeper::KeeperClient again = serve(keeper::OpenHow::attach);
  ASSERT_TRUE(again.write(open.exec_id, "hello\n"));
  const auto ended = again.wait(open.exec_id);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 0);
  EXPECT_TRUE(again.stop(0ms));
}

}  // namespace
}  // namespace berth::keeper_test
