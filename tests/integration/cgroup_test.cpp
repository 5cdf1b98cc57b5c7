#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "base/files.hpp"

#include <gtest/gtest.h>

#include <linux/sched.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

// Real control groups on this machine, below the test's own group.
namespace berth::keeper::sandbox {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t mebi = 1 << 20;

bool eventually(const std::function<bool()>& is_so, std::chrono::milliseconds limit = 20s) {
  return wait_until(-1, limit, is_so);
}

// If both versions are mounted, v1 is also tested alone, as on older machines.
enum class Use : std::uint8_t { all, legacy };

class CgroupTest : public testing::TestWithParam<Use> {
 protected:
  void SetUp() override {
    auto hierarchies = find_hierarchies(read_group_file("/proc/self/cgroup"),
                                        read_group_file("/proc/self/mountinfo"));
    if (GetParam() == Use::legacy) {
      std::erase_if(hierarchies, [](const Hierarchy& hierarchy) {
        return hierarchy.version == Hierarchy::Version::v2;
      });
    }
    layout_ = choose_layout(hierarchies, look_at_folder, {});
    if (GetParam() == Use::legacy && !layout_.has(Controller::freezer)) {
      GTEST_SKIP() << "no freezer of v1 here";
    }
    for (const auto controller : {Controller::memory, Controller::cpu, Controller::pids}) {
      if (layout_.has(controller)) continue;
      GTEST_SKIP() << "no controller " << name_of(controller) << " here: " << layout_.remedy;
    }
  }

  void TearDown() override {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    for (Cgroup& group : groups_) {
      EXPECT_TRUE(group.kill()) << group.name();
      EXPECT_TRUE(group.remove()) << group.name();
      EXPECT_EQ(folders_named(group.name()), std::vector<std::string>{});
    }
  }

  Cgroup& make(const std::string& id, const Limits& limits) {
    auto made = Cgroup::make(layout_, id, limits);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    groups_.reserve(8);  // so that references remain valid
    groups_.push_back(made ? *std::move(made) : Cgroup{});
    for (const Unenforced& missing : groups_.back().unenforced()) {
      ADD_FAILURE() << missing.limit << ": " << missing.why;
    }
    return groups_.back();
  }

  // A shell that is in the group before it does anything.
  pid_t run(const Cgroup& group, const std::string& script) {
    const pid_t child = start(group, script);
    EXPECT_GT(child, 0);
    children_.push_back(child);
    return child;
  }

  // The same, once it has certainly joined.
  pid_t run_for_long(const Cgroup& group, const std::string& script) {
    const pid_t child = run(group, script);
    EXPECT_TRUE(eventually([&] { return group.is_populated(); }));
    return child;
  }

  static pid_t start(const Cgroup& group, const std::string& script) {
    clone_args how{};
    how.exit_signal = SIGCHLD;
    const auto born = group.directory() < 0 ? Cgroup::Born::outside : Cgroup::Born::inside;
    if (born == Cgroup::Born::inside) {
      how.flags = CLONE_INTO_CGROUP;
      how.cgroup = static_cast<std::uint64_t>(group.directory());
    }
    const auto child = static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
    if (child != 0) return child;
    if (group.join(born) != 0) ::_exit(99);
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    ::_exit(98);
  }

  int wait_for(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    std::erase(children_, child);
    return status;
  }

  std::vector<std::string> folders_named(const std::string& name) const {
    std::vector<std::string> found;
    std::vector<std::string> bases{layout_.unified};
    bases.insert(bases.end(), layout_.legacy.begin(), layout_.legacy.end());
    for (const std::string& base : bases) {
      if (base.empty() || ::access((base + "/" + name).c_str(), F_OK) != 0) continue;
      found.push_back(base + "/" + name);
    }
    return found;
  }

  static std::uint64_t cpu_us(const Cgroup& group) {
    const CgroupUsage usage = group.usage();
    return usage.cpu_user_us.value_or(0) + usage.cpu_system_us.value_or(0);
  }

  CgroupLayout layout_;
  std::vector<Cgroup> groups_;
  std::vector<pid_t> children_;
};

// A loopback connection whose sender sends more than fits and whose receiver reads nothing. For a
// child, which keeps it until it is killed.
[[noreturn]] void hold_a_full_connection() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int sender = ::socket(AF_INET, SOCK_STREAM, 0);
  const bool connected = ::bind(listener, raw, size) == 0 && ::listen(listener, 1) == 0 &&
                         ::getsockname(listener, raw, &size) == 0 &&
                         ::connect(sender, raw, size) == 0 &&
                         ::accept(listener, nullptr, nullptr) >= 0;
  const std::string piece(std::size_t{256} << 10, 'x');
  while (connected && ::send(sender, piece.data(), piece.size(), MSG_DONTWAIT) > 0) {
  }
  while (connected) ::pause();
  ::_exit(1);
}

constexpr auto eat_memory = "head -c 200000000 /dev/zero | tail | cat > /dev/null; exit 0";
constexpr auto burn = "while :; do :; done";

TEST_P(CgroupTest, WhoTakesTooMuchMemoryIsKilledAndCounted) {
  Cgroup& group = make("memory", {.memory_bytes = 32 * mebi});
  wait_for(run(group, eat_memory));
  EXPECT_GE(group.oom_kills(), 1U);
  EXPECT_EQ(group.usage().oom_kills, group.oom_kills());
  EXPECT_LE(group.usage().memory_peak_bytes.value_or(0), 32 * mebi);
  EXPECT_GT(group.usage().memory_peak_bytes.value_or(0), 16 * mebi);
}

TEST_P(CgroupTest, WhoStaysBelowTheLimitIsNotCounted) {
  Cgroup& group = make("frugal", {.memory_bytes = 64 * mebi});
  EXPECT_EQ(wait_for(run(group, "exit 0")), 0);
  EXPECT_EQ(group.oom_kills(), 0U);
}

TEST_P(CgroupTest, WhatWaitsInSocketsIsCountedAsMemory) {
  const std::string& base = layout_.legacy[static_cast<std::size_t>(Controller::memory)];
  Cgroup& group = make("sockets", {.memory_bytes = 128 * mebi});
  const std::string folder = base + "/" + group.name();
  const auto in_sockets = [&] {
    return number_of(folder + "/memory.kmem.tcp.usage_in_bytes").value_or(0);
  };
  if (base.empty() || ::access((folder + "/memory.kmem.tcp.usage_in_bytes").c_str(), R_OK) != 0) {
    GTEST_SKIP() << "the kernel counts it itself, or not at all";
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (group.join(Cgroup::Born::outside) != 0) ::_exit(99);
    hold_a_full_connection();
  }
  children_.push_back(child);
  ASSERT_TRUE(eventually([&] { return in_sockets() >= 2 * mebi; })) << in_sockets();
  const std::uint64_t others = number_of(folder + "/memory.usage_in_bytes").value_or(0);
  // The kernel counts the rest in advance, and not exactly.
  EXPECT_GE(group.usage().memory_bytes.value_or(0) + mebi, others + in_sockets());
  EXPECT_GE(group.usage().memory_peak_bytes, group.usage().memory_bytes);
}

TEST_P(CgroupTest, AForkBombStopsAtTheLimitOfProcesses) {
  Cgroup& group = make("pids", {.pids = 12});
  run(group, "trap '' TERM; i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; wait");
  EXPECT_TRUE(eventually([&] {
    const auto events = group.usage().pids_peak.value_or(group.usage().pids.value_or(0));
    return events == 12;
  }));
  EXPECT_LE(group.usage().pids.value_or(99), 12U);
}

TEST_P(CgroupTest, TheCpuQuotaHolds) {
  Cgroup& group = make("cpu", {.cpu_millis = 200});
  const auto start = Clock::now();
  run(group, std::string{burn} + " & " + burn);
  ASSERT_TRUE(eventually([&] { return cpu_us(group) >= 200'000; }, 60s));
  const std::chrono::duration<double, std::micro> wall = Clock::now() - start;
  EXPECT_LT(static_cast<double>(cpu_us(group)) / wall.count(), 0.4);
  EXPECT_GT(group.usage().throttled_us.value_or(0), 0U);
}

TEST_P(CgroupTest, AFrozenGroupUsesNoTimeUntilItIsThawed) {
  Cgroup& group = make("freeze", {});
  run(group, burn);
  ASSERT_TRUE(eventually([&] { return cpu_us(group) > 0; }));
  ASSERT_TRUE(group.freeze());
  const std::uint64_t frozen = cpu_us(group);
  EXPECT_FALSE(eventually([&] { return cpu_us(group) > frozen; }, 200ms));
  ASSERT_TRUE(group.thaw());
  EXPECT_TRUE(eventually([&] { return cpu_us(group) > frozen; }));
}

TEST_P(CgroupTest, KillingEndsWhoeverIgnoresSignalsIsStoppedOrHasLeftItsSession) {
  Cgroup& group = make("stubborn", {});
  run(group,
      "trap '' TERM HUP INT; for i in 1 2 3 4 5 6 7 8 9 10; do "
      "setsid sh -c 'trap \"\" TERM HUP; sleep 600 & kill -STOP $!; wait' & done; wait");
  ASSERT_TRUE(eventually([&] { return group.usage().pids.value_or(0) >= 21; }));
  EXPECT_TRUE(group.is_populated());
  ASSERT_TRUE(group.kill());
  EXPECT_FALSE(group.is_populated());
}

TEST_P(CgroupTest, KillingEndsAFrozenGroup) {
  Cgroup& group = make("ice", {});
  run_for_long(group, burn);
  ASSERT_TRUE(group.freeze());
  EXPECT_TRUE(group.kill());
}

TEST_P(CgroupTest, RemovingLeavesNothingBehind) {
  Cgroup& group = make("gone", {.memory_bytes = 64 * mebi, .pids = 16});
  const std::string name = group.name();
  EXPECT_FALSE(folders_named(name).empty());
  EXPECT_EQ(wait_for(run(group, "cat /proc/meminfo > /dev/null")), 0);
  ASSERT_TRUE(group.remove());
  EXPECT_EQ(folders_named(name), std::vector<std::string>{});
}

TEST_P(CgroupTest, AGroupThatIsForgottenIsRemovedByItsHolder) {
  std::string name;
  {
    auto group = Cgroup::make(layout_, "forgotten", {});
    ASSERT_TRUE(group);
    name = group->name();
    EXPECT_FALSE(folders_named(name).empty());
  }
  EXPECT_EQ(folders_named(name), std::vector<std::string>{});
}

TEST_P(CgroupTest, TwoGroupsDoNotFeelEachOther) {
  Cgroup& greedy = make("greedy", {.memory_bytes = 32 * mebi});
  Cgroup& modest = make("modest", {.memory_bytes = 32 * mebi, .pids = 8});
  const pid_t quiet = run_for_long(modest, "sleep 600");
  wait_for(run(greedy, eat_memory));
  EXPECT_GE(greedy.oom_kills(), 1U);
  EXPECT_EQ(modest.oom_kills(), 0U);
  EXPECT_EQ(::kill(quiet, 0), 0);
  EXPECT_LT(modest.usage().memory_peak_bytes.value_or(0), 16 * mebi);
  ASSERT_TRUE(greedy.kill());
  EXPECT_TRUE(modest.is_populated());
}

TEST_P(CgroupTest, BytesOfTheDiskAreCountedOrNotKnown) {
  Cgroup& group = make("reader", {.memory_bytes = 32 * mebi});
  if (!layout_.has(Controller::io)) {
    EXPECT_EQ(group.usage().io_read_bytes, std::nullopt);
    EXPECT_EQ(group.usage().io_written_bytes, std::nullopt);
    GTEST_SKIP() << "nothing counts bytes of the disk here";
  }
  EXPECT_EQ(group.usage().io_read_bytes, 0U);
  constexpr auto read_past_the_cache =
      "f=$(mktemp /var/tmp/berth-io-XXXXXX); trap 'rm $f' EXIT; "
      "dd if=/dev/zero of=$f bs=1M count=4 conv=fsync 2> /dev/null; "
      "dd if=$f of=/dev/null bs=1M iflag=direct 2> /dev/null";
  if (wait_for(run(group, read_past_the_cache)) != 0) GTEST_SKIP() << "no disk below /var/tmp";
  EXPECT_GE(group.usage().io_read_bytes.value_or(0), 4 * mebi);
}

TEST_P(CgroupTest, ALimitThatCannotBeEnforcedIsReportedWithItsRemedy) {
  CgroupLayout poor;
  poor.unified = layout_.unified;  // no controllers, only the group itself
  poor.remedy = "mend it";
  auto group = Cgroup::make(poor, "poor", {.memory_bytes = 32 * mebi, .pids = 8});
  ASSERT_TRUE(group) << group.error().message;
  ASSERT_EQ(group->unenforced().size(), 3U);  // memory, its swap, and processes
  EXPECT_EQ(group->unenforced()[0].remedy, "mend it");
  EXPECT_NE(group->unenforced()[0].why.find("memory"), std::string::npos);
}

TEST_P(CgroupTest, LimitsThatContradictEachOtherMakeNoGroup) {
  const auto made = Cgroup::make(layout_, "wrong", {.swap_bytes = mebi});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::validation_failed);
  EXPECT_FALSE(Cgroup::make(layout_, "../up", {}));
}

// The creator is killed, so that it cannot clean up; the process it started keeps sleeping in its
// group.
TEST_P(CgroupTest, WhatAKilledMakerLeftIsSweptAndTheGroupsOfTheLivingAreNot) {
  Cgroup& alive = make("alive", {});
  run_for_long(alive, "sleep 600");
  int channel[2];
  ASSERT_EQ(::pipe(channel), 0);
  const pid_t maker = ::fork();
  ASSERT_GE(maker, 0);
  if (maker == 0) {
    auto group = Cgroup::make(layout_, "orphan", {.pids = 8});
    const bool sleeps = group && start(*group, "exec sleep 600") > 0 &&
                        eventually([&] { return group->is_populated(); });
    const std::string said = sleeps ? group->name() : "";
    [[maybe_unused]] const auto wrote = ::write(channel[1], said.data(), said.size());
    if (sleeps) ::pause();
    ::_exit(1);
  }
  const Fd reader{channel[0]};
  const Fd writer{channel[1]};
  std::string name(256, '\0');
  const ssize_t size = ::read(reader.get(), name.data(), name.size());
  name.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  ::kill(maker, SIGKILL);
  ::waitpid(maker, nullptr, 0);
  ASSERT_FALSE(folders_named(name).empty());
  Cgroup orphan = Cgroup::adopt(layout_, name);
  EXPECT_TRUE(orphan.is_populated());
  const auto found = find_leftovers(layout_);
  EXPECT_NE(std::ranges::find(found, name), found.end());
  EXPECT_EQ(std::ranges::find(found, alive.name()), found.end());
  EXPECT_EQ(sweep_leftovers(layout_), std::vector<std::string>{});
  EXPECT_EQ(folders_named(name), std::vector<std::string>{});
  EXPECT_TRUE(alive.is_populated());
}

INSTANTIATE_TEST_SUITE_P(Machine, CgroupTest, testing::Values(Use::all, Use::legacy),
                         [](const testing::TestParamInfo<Use>& use) {
                           return use.param == Use::all ? "Whole" : "OnlyV1";
                         });

}  // namespace
}  // namespace berth::keeper::sandbox
