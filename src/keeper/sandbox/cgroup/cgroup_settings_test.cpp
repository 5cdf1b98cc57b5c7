#include "keeper/sandbox/cgroup/cgroup_settings.hpp"

#include "keeper/sandbox/cgroup/cgroup_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace berth::keeper::sandbox {
namespace {

TEST(CgroupSettings, ContradictoryLimitsAreRefused) {
  const Limits wrong[] = {
      {.swap_bytes = 1 << 20},
      {.memory_bytes = 4096},
      {.memory_bytes = ~std::uint64_t{0}},
      {.memory_bytes = 1 << 30, .swap_bytes = ~std::uint64_t{0}},
      {.pids = 1},
      {.cpu_millis = 5},
      {.cpu_weight = 10'001},
  };
  for (const Limits& limits : wrong) {
    const auto checked = check(limits);
    ASSERT_FALSE(checked) << settings_of(limits).size();
    EXPECT_EQ(checked.error().code, Errc::validation_failed);
    EXPECT_NE(checked.error().remedy, "");
  }
}

TEST(CgroupSettings, SensibleLimitsAreFine) {
  EXPECT_TRUE(check(Limits{}));
  EXPECT_TRUE(check(Limits{.memory_bytes = 64 << 20,
                           .swap_bytes = 1 << 20,
                           .pids = 64,
                           .cpu_millis = 500,
                           .cpu_weight = 10'000}));
}

const Setting* find(const std::vector<Setting>& settings, std::string_view legacy_file) {
  const auto found = std::ranges::find_if(
      settings, [&](const Setting& setting) { return setting.legacy.file == legacy_file; });
  return found == settings.end() ? nullptr : &*found;
}

TEST(CgroupSettings, TheSwapLimitOfV1CountsTheMemoryToo) {
  const auto settings = settings_of({.memory_bytes = 64 << 20, .swap_bytes = 1 << 20});
  const Setting* swap = find(settings, "memory.memsw.limit_in_bytes");
  ASSERT_NE(swap, nullptr);
  EXPECT_EQ(swap->legacy.value, std::to_string(65 << 20));
  EXPECT_EQ(swap->unified.value, std::to_string(1 << 20));
  // The kernel rejects a combined limit below the memory limit.
  const Setting* memory = find(settings, "memory.limit_in_bytes");
  EXPECT_LT(memory, swap);
}

TEST(CgroupSettings, AMemoryLimitAloneForbidsSwap) {
  const auto settings = settings_of({.memory_bytes = 64 << 20});
  const Setting* swap = find(settings, "memory.memsw.limit_in_bytes");
  ASSERT_NE(swap, nullptr);
  EXPECT_EQ(swap->unified.value, "0");
}

// v2 counts them as memory.
TEST(CgroupSettings, V1LimitsTheBuffersOfSocketsToAPartOfTheMemory) {
  constexpr std::uint64_t mebi = 1 << 20;
  const auto socket_bytes = [](std::uint64_t memory_bytes) {
    const auto settings = settings_of({.memory_bytes = memory_bytes});
    const Setting* sockets = find(settings, "memory.kmem.tcp.limit_in_bytes");
    EXPECT_TRUE(sockets != nullptr && sockets->unified.file.empty());
    return sockets != nullptr ? sockets->legacy.value : "";
  };
  EXPECT_EQ(socket_bytes(256 * mebi), std::to_string(32 * mebi));
  EXPECT_EQ(socket_bytes(8 * mebi), std::to_string(4 * mebi)) << "too little for a connection";
  EXPECT_EQ(socket_bytes(4096 * mebi), std::to_string(64 * mebi)) << "the machine's are few";
  EXPECT_EQ(find(settings_of({.pids = 8}), "memory.kmem.tcp.limit_in_bytes"), nullptr);
}

TEST(CgroupSettings, ALimitWhoseFileTheKernelDoesNotHaveIsNotInForce) {
  EXPECT_NE(set_and_verify("/proc/self", {"memory.kmem.tcp.limit_in_bytes", "4194304"}), "");
}

TEST(CgroupSettings, ThousandthsOfACpuAreAQuotaOfEachPeriod) {
  const auto settings = settings_of({.cpu_millis = 1500, .cpu_weight = 200});
  const Setting* quota = find(settings, "cpu.cfs_quota_us");
  const Setting* weight = find(settings, "cpu.shares");
  ASSERT_NE(quota, nullptr);
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(quota->unified.value, "150000 100000");
  EXPECT_EQ(quota->legacy.value, "150000");
  EXPECT_EQ(weight->unified.value, "200");
  EXPECT_EQ(weight->legacy.value, "2048");
}

TEST(CgroupSettings, NothingAskedIsNothingSet) {
  EXPECT_TRUE(settings_of({}).empty());
}

TEST(CgroupFiles, NumbersAreFoundByTheirWholeKey) {
  constexpr auto text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
  EXPECT_EQ(keyed_number(text, "oom_kill"), 3U);
  EXPECT_EQ(keyed_number(text, "oom"), std::nullopt);
  EXPECT_EQ(keyed_number("", "oom"), std::nullopt);
  EXPECT_EQ(number_in("max\n"), std::nullopt);
  EXPECT_EQ(number_in("4096\n"), 4096U);
}

TEST(CgroupFiles, DevicesAreAddedUp) {
  constexpr auto text = "8:0 rbytes=10 wbytes=1 rios=9\n8:16 rbytes=5 wbytes=2 dbytes=7\n";
  EXPECT_EQ(summed_number(text, "rbytes"), 15U);
  EXPECT_EQ(summed_number(text, "wbytes"), 3U);
  EXPECT_EQ(summed_number(text, "bytes"), 0U);
}

TEST(CgroupFiles, DevicesAreAddedUpAsV1CountsThem) {
  constexpr auto text =
      "8:16 Read 10\n8:16 Write 1\n8:16 Sync 11\n8:16 Async 0\n8:16 Total 11\n"
      "8:0 Read 5\n8:0 Write 2\n8:0 Total 7\nTotal 18\n";
  EXPECT_EQ(summed_lines(text, "Read"), 15U);
  EXPECT_EQ(summed_lines(text, "Write"), 3U);
  EXPECT_EQ(summed_lines("Total 0\n", "Read"), 0U);
}

}  // namespace
}  // namespace berth::keeper::sandbox
