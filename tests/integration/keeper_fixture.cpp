#include "integration/keeper_fixture.hpp"

#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace berth::keeper_test {

bool eventually(const std::function<bool()>& is_so, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

bool is_running(pid_t pid) {
  const auto stat = keeper::process_stat(pid);
  return stat && stat->state != 'Z';
}

void KeeperTest::SetUp() {
  // Processes that escape a killed keeper and its wardens become children of the test, where they
  // are seen.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::string name = "/tmp/berth-keeper-XXXXXX";
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  root_ = name;
  start_keeper();
}

std::string KeeperTest::keeper_program() {
  return BERTH_KEEPER;
}

void KeeperTest::start_keeper() {
  std::vector<std::string> environment;
  for (const char* passed : {"ASAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(passed)) {
      environment.push_back(std::string{passed} + "=" + value);
    }
  }
  auto spawned = keeper::spawn_keeper(
      {.program = keeper_program(), .folder = folder(), .environment = environment});
  ASSERT_TRUE(spawned) << spawned.error().message;
  pid_ = spawned->pid;
  client_.emplace(std::move(spawned->control));
  // The response shows that its socket and its card exist.
  const auto listing = client_->list();
  ASSERT_TRUE(listing) << listing.error().message;
}

void KeeperTest::TearDown() {
  if (!status_ && pid_ != 0) {
    ::kill(pid_, SIGTERM);
    EXPECT_TRUE(wait_for_keeper()) << "the keeper does not end";
  }
  const auto reap = [] {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return keeper::descendants_of(::getpid()).empty();
  };
  EXPECT_TRUE(eventually(reap)) << "processes are left";
  const auto said = read_file(folder() + "/" + keeper::log_file, 1 << 20);
  if (said) EXPECT_EQ(*said, "");
  std::filesystem::remove_all(root_);
}

keeper::KeeperClient KeeperTest::connect() {
  auto socket = keeper::connect_keeper(folder());
  EXPECT_TRUE(socket) << (socket ? "" : socket.error().message);
  return keeper::KeeperClient{socket ? *std::move(socket) : Fd{}};
}

std::optional<int> KeeperTest::wait_for_keeper(std::chrono::milliseconds limit) {
  int status = 0;
  if (eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, limit)) {
    status_ = status;
  }
  return status_;
}

keeper::Exec KeeperTest::command(std::vector<std::string> argv) {
  return {.exec_id = "e" + std::to_string(++last_id_),
          .argv = std::move(argv),
          .environment = {"PATH=/usr/bin:/bin"},
          .cwd = root_,
          .grace_ms = 200};
}

keeper::Exec KeeperTest::shell(std::string script) {
  return command({"sh", "-c", std::move(script)});
}

keeper::Ended KeeperTest::run(const keeper::Exec& exec) {
  const auto ended = client().run(exec, 100s);
  EXPECT_TRUE(ended) << (ended ? "" : ended.error().message);
  return ended.value_or(keeper::Ended{});
}

std::vector<keeper::Record> KeeperTest::records_of(const std::string& exec_id) const {
  std::vector<keeper::Record> records;
  auto reader = keeper::OutputReader::open(folder() + "/" + keeper::output_file(exec_id));
  EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
  while (reader) {
    auto record = reader->next();
    EXPECT_TRUE(record) << (record ? "" : record.error().message);
    if (!record || !*record) break;
    records.push_back(**std::move(record));
  }
  return records;
}

Streams KeeperTest::output_of(const std::string& exec_id) const {
  Streams streams;
  for (const keeper::Record& record : records_of(exec_id)) {
    std::string& stream = record.stream == keeper::Stream::out   ? streams.out
                          : record.stream == keeper::Stream::err ? streams.err
                                                                 : streams.notes;
    stream += record.bytes;
  }
  return streams;
}

std::string KeeperTest::wait_for_output(const std::string& exec_id, const std::string& ending) {
  std::string seen;
  const auto came = [&] {
    seen = output_of(exec_id).out;
    return seen.ends_with(ending);
  };
  EXPECT_TRUE(eventually(came)) << "output so far: " << seen;
  return seen;
}

pid_t KeeperTest::pid_written(const std::string& exec_id, std::size_t line) {
  pid_t pid = 0;
  const auto came = [&] {
    std::istringstream lines{output_of(exec_id).out};
    pid_t number = 0;
    for (std::size_t i = 0; lines >> number; ++i) {
      if (i == line) pid = number;
    }
    return pid != 0;
  };
  EXPECT_TRUE(eventually(came));
  return pid;
}

}  // namespace berth::keeper_test
