#pragma once

#include "keeper/protocol/client.hpp"
#include "keeper/protocol/exec_journal.hpp"
#include "keeper/protocol/output.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <gtest/gtest.h>

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

// The real berth-keeper in its own folder, and what it leaves there.
namespace berth::keeper_test {

using namespace std::chrono_literals;

// Polls until it is true, at most for the limit: for facts that the kernel does not announce.
bool eventually(const std::function<bool()>& is_so, std::chrono::milliseconds limit = 10s);
bool is_running(pid_t pid);

struct Streams {
  std::string out;
  std::string err;
  std::string notes;
};

class KeeperTest : public testing::Test {
 protected:
  void SetUp() override;
  // Stops what is left, and fails the test when one of its processes survives.
  void TearDown() override;

  // The program that holds; another one may start it.
  virtual std::string keeper_program();
  void start_keeper();
  keeper::KeeperClient& client() { return *client_; }
  keeper::KeeperClient connect();
  std::string folder() const { return root_ + "/k"; }
  const std::string& root() const { return root_; }
  pid_t keeper_pid() const { return pid_; }
  // The status of waitpid, when the keeper has ended in time.
  std::optional<int> wait_for_keeper(std::chrono::milliseconds limit = 20s);

  // A shell command with a usual PATH, in the test's folder.
  keeper::Exec shell(std::string script);
  keeper::Exec command(std::vector<std::string> argv);
  keeper::Ended run(const keeper::Exec& exec);
  Streams output_of(const std::string& exec_id) const;
  std::vector<keeper::Record> records_of(const std::string& exec_id) const;
  // The command's stdout, once it ends with the text.
  std::string wait_for_output(const std::string& exec_id, const std::string& ending);
  // The numbers that a command has written to its stdout, one per line.
  pid_t pid_written(const std::string& exec_id, std::size_t line = 0);

 private:
  std::string root_;
  pid_t pid_ = 0;
  std::optional<int> status_;
  std::optional<keeper::KeeperClient> client_;
  int last_id_ = 0;
};

}  // namespace berth::keeper_test
