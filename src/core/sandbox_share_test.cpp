#include "core/sandbox_share.hpp"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

TEST(SandboxShareTest, CountsWhatAConfigAsksForAndTheUsualWhereItDoesNot) {
  const SandboxShare share = share_of({{"provider", "linux"}, {"memoryMb", 100}});
  EXPECT_EQ(share,
            (SandboxShare{
                .memory_mb = 100, .disk_mb = usual_disk_mb, .pids = usual_pids, .sandboxes = 1}));
  EXPECT_EQ(share_of({{"provider", "e2b"}, {"memoryMb", 100}}), SandboxShare{});
}

TEST(SandboxShareTest, NamesTheFirstDimensionWithoutRoom) {
  const SandboxShare limit{.memory_mb = 1000, .pids = 50};
  const SandboxShare one{.memory_mb = 600, .disk_mb = 9999, .pids = 10, .sandboxes = 1};
  EXPECT_EQ(why_no_room({}, one, limit), std::nullopt);
  EXPECT_EQ(why_no_room(one, one, limit),
            "600 of 1000 MB of memory are taken, and it asks for 600");
  EXPECT_EQ(why_no_room({.pids = 45}, one, limit),
            "45 of 50 processes are taken, and it asks for 10");
}

TEST(SandboxShareTest, WhatAsksForNothingAlwaysFits) {
  EXPECT_EQ(why_no_room({.sandboxes = 9}, {}, {.sandboxes = 5}), std::nullopt);
}

}  // namespace
}  // namespace berth::core
