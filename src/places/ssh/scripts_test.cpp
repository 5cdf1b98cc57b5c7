#include "places/ssh/scripts.hpp"

#include "places/ssh/shell_scripts.hpp"

#include <gtest/gtest.h>

namespace berth::places::ssh {
namespace {

TEST(Scripts, FactsAreToldFromWhatProgramsSay) {
  const std::string output = "mkdir: no\n#cwd /a b\n#home\n#cwd /last\nrest";
  EXPECT_EQ(fact(output, "cwd"), "/last");
  EXPECT_EQ(fact(output, "home"), std::nullopt);
  EXPECT_EQ(fact(output, "cw"), std::nullopt);
  EXPECT_EQ(fact("", "cwd"), std::nullopt);
  EXPECT_EQ(remarks(output), "mkdir: no\nrest\n");
}

TEST(Scripts, APathWithBlanksAndQuotesStaysOneWord) {
  const LeasePaths lease{.workspace = "/srv/it's work", .lease_id = "7f3a"};
  EXPECT_TRUE(enter_script(lease).contains("w='/srv/it'\\''s work'\n"));
  EXPECT_EQ(lease.scratch(), "/srv/it's work/.berth/leases/7f3a/work");
}

TEST(ShellOffset, GrowsWithEitherStreamAndComesBackWhole) {
  std::uint64_t last = 0;
  ShellOffset at;
  for (int i = 1; i < 100; ++i) {
    (i % 3 == 0 ? at.out : at.err) += static_cast<std::uint64_t>(i) * 1'000'000;
    EXPECT_GT(at.pack(), last);
    last = at.pack();
    EXPECT_EQ(ShellOffset::unpack(last).out, at.out);
    EXPECT_EQ(ShellOffset::unpack(last).err, at.err);
  }
  const ShellOffset largest{.out = ShellOffset::stream_bytes_max,
                            .err = ShellOffset::stream_bytes_max};
  EXPECT_LT(largest.pack(), std::uint64_t{1} << 63) << "the store keeps offsets as signed numbers";
}

}  // namespace
}  // namespace berth::places::ssh
