#include "base/clock.hpp"
#include "integration/place_contract.hpp"
#include "keeper/holder/process_tree.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace berth::place_test {

using namespace places;

Task<> Collected::take(std::span<const OutputPiece> pieces) {
  for (const OutputPiece& piece : pieces) {
    has_gaps = has_gaps || (next_ && piece.offset != *next_) || piece.next_offset <= piece.offset;
    next_ = piece.next_offset;
    ends.push_back(piece.next_offset);
    bytes += piece.bytes.size();
    if (!keeps_bytes) continue;
    std::string& stream = piece.kind == OutputKind::out   ? out
                          : piece.kind == OutputKind::err ? err
                                                          : notes;
    stream += piece.bytes;
  }
  co_return Result<>{};
}

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

void PlaceContract::SetUp() {
  ::signal(SIGPIPE, SIG_IGN);  // as the server does
  // Processes that escape a keeper and its wardens become children of the test, where they are
  // seen.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ground_ = GetParam()();
  ASSERT_NE(ground_, nullptr);
  const Result<> opened = await(ground_->open(loop_.get_executor()));
  ASSERT_TRUE(opened) << opened.error().message;
  place_ = ground_->make_place(loop_.get_executor(), pool_);
}

void PlaceContract::TearDown() {
  if (place_) {
    const Result<> closed = await(place_->close());
    EXPECT_TRUE(closed) << closed.error().message;
  }
  place_.reset();
  if (ground_) {
    const Result<> ended = await(ground_->close());
    EXPECT_TRUE(ended) << ended.error().message;
  }
  EXPECT_TRUE(run_until([&] { return loop_.stopped(); })) << "a task of the place is left";
  ground_.reset();
  const auto all_gone = [] {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return keeper::descendants_of(::getpid()).empty();
  };
  EXPECT_TRUE(eventually(all_gone)) << "processes are left";
}

void PlaceContract::restart() {
  const Result<> closed = await(place_->close());
  EXPECT_TRUE(closed) << closed.error().message;
  place_ = ground_->make_place(loop_.get_executor(), pool_);
}

bool PlaceContract::run_until(const std::function<bool()>& is_so, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    if (loop_.stopped()) loop_.restart();
    loop_.run_one_for(20ms);
  }
  return true;
}

AcquireRequest PlaceContract::request() {
  SystemRandom random;
  const Time now = SystemClock{}.now();
  AcquireRequest request{.lease = {.key = core::LeaseId::make(random, now),
                                   .driver = ground().driver(),
                                   .company_id = core::CompanyId::make(random, now),
                                   .environment_id = core::EnvironmentId::make(random, now),
                                   .run_id = core::RunId::make(random, now),
                                   .config = ground().config()}};
  ground().add_secrets(request.lease);
  return request;
}

PlaceRef PlaceContract::new_lease() {
  AcquireRequest wanted = request();
  const Result<Acquired> acquired = await(place().acquire(wanted));
  EXPECT_TRUE(acquired) << acquired.error().message;
  if (acquired) {
    wanted.lease.provider_lease_id = acquired->provider_lease_id;
    wanted.lease.metadata = acquired->metadata;
  }
  return std::move(wanted.lease);
}

void CommandContract::SetUp() {
  PlaceContract::SetUp();
  if (HasFatalFailure() || IsSkipped()) return;
  lease_ = new_lease();
  const Result<Workspace> realized = await(commands().realize(*lease_, std::nullopt));
  ASSERT_TRUE(realized) << realized.error().message;
  workspace_ = *realized;
}

void CommandContract::TearDown() {
  if (lease_) {
    const Result<> released = await(place().release(*lease_, core::LeaseEvent::release_succeeded));
    EXPECT_TRUE(released) << released.error().message;
    EXPECT_EQ(ground().leftovers(), std::vector<std::string>{});
  }
  PlaceContract::TearDown();
}

Command CommandContract::command(std::vector<std::string> argv) {
  Command command{.exec_id = "e" + std::to_string(++last_id_),
                  .argv = std::move(argv),
                  .cwd = workspace_.cwd,
                  .grace_ms = 200};
  command.environment.emplace("PATH", Secret{"/usr/local/bin:/usr/bin:/bin"});
  return command;
}

Started CommandContract::start(const Command& command) {
  const Result<Started> started = await(commands().start(lease(), command));
  EXPECT_TRUE(started) << started.error().message;
  return started.value_or(Started{});
}

std::shared_ptr<PlaceContract::Pending<Ended>> CommandContract::begin_follow(
    const std::string& exec_id, Collected& output, std::uint64_t offset) {
  return begin(commands().follow(lease(), exec_id, offset, output));
}

Ended CommandContract::follow(const std::string& exec_id, Collected& output, std::uint64_t offset) {
  const Result<Ended> ended = await(commands().follow(lease(), exec_id, offset, output));
  EXPECT_TRUE(ended) << ended.error().message;
  EXPECT_FALSE(output.has_gaps);
  return ended.value_or(Ended{});
}

Ended CommandContract::run(const Command& command, Collected& output) {
  start(command);
  return follow(command.exec_id, output);
}

pid_t CommandContract::pid_in(const Collected& output) {
  EXPECT_TRUE(run_until([&] { return output.out.contains('\n'); })) << "said: " << output.out;
  const auto pid = static_cast<pid_t>(std::strtol(output.out.c_str(), nullptr, 10));
  return ground().pid_here(lease(), pid);
}

pid_t CommandContract::pid_of(const Started& started) {
  return started.pid ? ground().pid_here(lease(), static_cast<pid_t>(*started.pid)) : 0;
}

}  // namespace berth::place_test
