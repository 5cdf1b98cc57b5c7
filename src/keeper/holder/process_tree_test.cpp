#include "keeper/holder/process_tree.hpp"

#include "base/owned.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace berth::keeper {
namespace {

TEST(ProcessStatText, IsReadWhateverTheNameOfTheProcess) {
  const std::string tail =
      " S 42 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 777 1000000 55 18446744073709551615 1";
  for (const std::string name : {"sh", "a b", ") R 1 (", "(", ""}) {
    const auto stat = parse_process_stat("7 (" + name + ")" + tail);
    ASSERT_TRUE(stat) << name;
    EXPECT_EQ(stat->parent, 42) << name;
    EXPECT_EQ(stat->state, 'S') << name;
    EXPECT_EQ(stat->cpu_ticks, 100U) << name;
    EXPECT_EQ(stat->start_ticks, 777U) << name;
    EXPECT_EQ(stat->resident_pages, 55U) << name;
  }
  for (const char* bad : {"", "7", "7 (sh)", "7 (sh) S", "7 (sh) S x 1 1 0"}) {
    EXPECT_FALSE(parse_process_stat(bad)) << bad;
  }
}

// A child with a child of its own; both live until the pipe is closed.
TEST(ProcessTree, HasChildrenAndTheirChildrenInBothWaysOfLooking) {
  std::array<int, 2> hold{};
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe2(hold.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(hold[1]);
    const pid_t grandchild = ::fork();
    if (grandchild != 0 && ::write(ready[1], &grandchild, sizeof grandchild) < 0) ::_exit(1);
    char byte = 0;
    if (::read(hold[0], &byte, 1) != 0) ::_exit(1);
    if (grandchild != 0) ::waitpid(grandchild, nullptr, 0);
    ::_exit(0);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(ready[0], &grandchild, sizeof grandchild), sizeof grandchild);
  const std::vector<pid_t> expected{child, grandchild};
  EXPECT_EQ(descendants_of(::getpid()), expected);
  EXPECT_EQ(descendants_by_scan(::getpid()), expected);
  EXPECT_EQ(descendants_of(grandchild), std::vector<pid_t>{});
  for (const int fd : {hold[0], hold[1], ready[0], ready[1]}) ::close(fd);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace berth::keeper
