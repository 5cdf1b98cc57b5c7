#pragma once

#include "drivers/ssh/ssh.hpp"
#include "support/sshd.hpp"
#include "support/temporary_folder.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace berth::drivers {

using namespace std::chrono_literals;

// Everything that was taken, in order, each stream apart.
class Collected final : public OutputTaker {
 public:
  Task<> take(std::span<const OutputPiece> pieces) override;

  std::string out;
  std::string err;
  std::uint64_t next_offset = 0;
  // Called after each batch, for tests that act in the middle.
  std::function<Result<>()> on_batch = [] { return Result<>{}; };
};

// The driver with a private sshd on the loopback.
class SshTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  ssh::Options options() const;
  void make_driver(ssh::Options options);
  void make_driver() { make_driver(options()); }
  Ssh& driver() { return *driver_; }
  tests::PrivateSshd& sshd() { return *sshd_; }
  void use_sshd(std::vector<std::string> settings);

  // The config and secrets for the private sshd.
  LeaseFacts lease();
  // The same, acquired: with its metadata.
  LeaseFacts acquired();
  static Command shell(std::string script, std::string exec_id = "e1");
  Command command(const LeaseFacts& lease, std::string script, std::string exec_id = "e1");
  // Start and follow to the end.
  Ended run(const LeaseFacts& lease, const Command& command, Collected& output);
  // Closes the driver, and fails the test when anything of it is left.
  void close();

  // Runs the loop until the task has ended.
  template <class T>
  Result<T> wait(Task<T> task, std::chrono::milliseconds limit = 60s) {
    std::optional<Result<T>> end;
    asio::co_spawn(loop_, std::move(task), [&](std::exception_ptr thrown, Result<T> result) {
      if (thrown) std::rethrow_exception(thrown);
      end = std::move(result);
    });
    run_loop_until([&] { return end.has_value(); }, limit);
    if (!end) return fail(Errc::timed_out, "the test's own limit");
    return *std::move(end);
  }
  bool run_loop_until(const std::function<bool()>& is_so, std::chrono::milliseconds limit = 30s);

  asio::io_context& loop() { return loop_; }
  std::string control_root() const { return control_.file("c"); }
  std::string lease_folder(const LeaseFacts& lease) const;

 private:
  asio::io_context loop_;
  SystemClock clock_;
  tests::TemporaryFolder control_;
  std::unique_ptr<tests::PrivateSshd> sshd_;
  std::unique_ptr<Ssh> driver_;
  SystemRandom random_;
};

}  // namespace berth::drivers
