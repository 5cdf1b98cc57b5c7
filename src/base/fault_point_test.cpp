#include "base/fault_point.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include <unistd.h>

namespace berth {
namespace {

// The variables are read once, so each of these runs in its own process.
void pass_points(const std::string& point, const std::string& log) {
  ::setenv("BERTH_FAULT_POINT", point.c_str(), 1);
  ::setenv("BERTH_FAULT_LOG", log.c_str(), 1);
  fault_point("first.step");
  fault_point("second.step");
  fault_point("second.step");
  ::_exit(7);
}

class FaultPointTest : public testing::Test {
 protected:
  FaultPointTest() { std::ofstream{log}; }
  ~FaultPointTest() override { ::unlink(log.c_str()); }

  std::string noted() const { return read_file(log, 1024).value_or("unreadable"); }

  std::string log = testing::TempDir() + "fault_point_test." + std::to_string(::getpid());
};

TEST_F(FaultPointTest, KillsTheProcessAtThePassThatIsNamed) {
  using testing::ExitedWithCode;
  using testing::KilledBySignal;
  EXPECT_EXIT(pass_points("second.step:2", log), KilledBySignal(SIGKILL), "");
  EXPECT_EQ(noted(), "second.step\n");
  EXPECT_EXIT(pass_points("first.step", log), KilledBySignal(SIGKILL), "");
  EXPECT_EQ(noted(), "second.step\nfirst.step\n");
  EXPECT_EXIT(pass_points("second.step:3", log), ExitedWithCode(7), "");
  EXPECT_EXIT(pass_points("third.step", log), ExitedWithCode(7), "");
  EXPECT_EXIT(pass_points("", log), ExitedWithCode(7), "");
  EXPECT_EQ(noted(), "second.step\nfirst.step\n");
}

TEST_F(FaultPointTest, WritesToNoFileThatIsNotThereOrThatALinkNames) {
  const std::string other = log + ".other";
  EXPECT_EXIT(pass_points("first.step", other), testing::KilledBySignal(SIGKILL), "");
  EXPECT_NE(::access(other.c_str(), F_OK), 0);
  ASSERT_EQ(::symlink(log.c_str(), other.c_str()), 0);
  EXPECT_EXIT(pass_points("first.step", other), testing::KilledBySignal(SIGKILL), "");
  ::unlink(other.c_str());
  EXPECT_EQ(noted(), "");
}

}  // namespace
}  // namespace berth
