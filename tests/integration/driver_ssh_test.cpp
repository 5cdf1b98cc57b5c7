#include "integration/driver_ssh_fixture.hpp"

#include <filesystem>

namespace berth::drivers {
namespace {

TEST_F(SshTest, RunsACommandAndLeavesNothing) {
  make_driver();
  const LeaseFacts lease = acquired();
  Collected output;
  const Ended ended = run(lease, command(lease, "echo out; echo err >&2; pwd; exit 3"), output);
  EXPECT_EQ(ended.outcome, Outcome::exited);
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(output.out, "out\n" + sshd().workspace() + "\n");
  EXPECT_EQ(output.err, "err\n");
  ASSERT_TRUE(wait(driver().release(lease, core::LeaseEvent::release_succeeded)));
  EXPECT_FALSE(std::filesystem::exists(sshd().workspace() + "/.berth"));
  close();
}

}  // namespace
}  // namespace berth::drivers
