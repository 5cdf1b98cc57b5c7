#pragma once

#include "places/place.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <gtest/gtest.h>

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

// What every place guarantees, as tests that each place runs: one suite per ability. A place joins
// with
//   INSTANTIATE_TEST_SUITE_P(Local, PlaceContract, testing::Values(&make_local_ground));
// and the same for the suite of each of its abilities.
namespace berth::place_test {

using namespace std::chrono_literals;

// What a place needs for the duration of one test. Commands run on this machine, however they
// are reached, so that the test can see their processes.
class Ground {
 public:
  virtual ~Ground() = default;

  // Before the first place is made, and after the last has closed.
  virtual Task<> open(asio::any_io_executor /*executor*/) { co_return Result<>{}; }
  virtual Task<> close() { co_return Result<>{}; }
  // A place as a server has it; several may follow one another, as after a restart.
  virtual std::unique_ptr<places::Place> make_place(asio::any_io_executor executor,
                                                    asio::thread_pool& pool) = 0;
  // The environment's config, and the values of its secrets.
  virtual bj::object config() const = 0;
  virtual core::DriverKind driver() const { return core::DriverKind::sandbox; }
  // By the names of PlaceContract.ItHasTheAbilitiesThatItIsKnownFor.
  virtual std::set<std::string> abilities() const = 0;
  virtual void add_secrets(places::PlaceRef& /*lease*/) const {}
  // The keeper that holds a lease's commands.
  virtual pid_t keeper_of(const places::PlaceRef& lease) const = 0;
  // The pid on this machine of the process with that pid inside; 0 when it has ended.
  virtual pid_t pid_here(const places::PlaceRef& /*lease*/, pid_t pid_there) const {
    return pid_there;
  }
  // What is left of leases in the place: paths, processes, anything that has a name.
  virtual std::vector<std::string> leftovers() const = 0;
};
using GroundMaker = std::unique_ptr<Ground> (*)();

// Keeps the output it gets.
class Collected final : public places::OutputTaker {
 public:
  Task<> take(std::span<const places::OutputPiece> pieces) override;

  std::string out;
  std::string err;
  std::string notes;
  std::vector<std::uint64_t> ends;  // the offset after each piece
  bool has_gaps = false;
  bool keeps_bytes = true;
  std::uint64_t bytes = 0;

 private:
  std::optional<std::uint64_t> next_;
};

// Polls until it is true, at most for the limit: for facts that the kernel does not announce.
bool eventually(const std::function<bool()>& is_so, std::chrono::milliseconds limit = 20s);
bool is_running(pid_t pid);

class PlaceContract : public testing::TestWithParam<GroundMaker> {
 protected:
  void SetUp() override;
  void TearDown() override;

  Ground& ground() { return *ground_; }
  places::Place& place() { return *place_; }
  // Its abilities, for tests of places that have them.
  places::Commands& commands() { return *place_->abilities().commands; }
  places::Ports& ports() { return *place_->abilities().ports; }
  // Simulates the end of the server and the start of another.
  void restart();

  // A response that is still awaited.
  template <class T>
  struct Pending {
    std::optional<Result<T>> result = {};
    std::exception_ptr thrown = {};
    asio::cancellation_signal cancel = {};
  };
  template <class T>
  std::shared_ptr<Pending<T>> begin(Task<T> task) {
    auto pending = std::make_shared<Pending<T>>();
    asio::co_spawn(
        loop_, std::move(task),
        asio::bind_cancellation_slot(pending->cancel.slot(),
                                     [pending](std::exception_ptr thrown, Result<T> result) {
                                       pending->thrown = thrown;
                                       pending->result = std::move(result);
                                     }));
    return pending;
  }
  // Ends the waiting, like a server that shuts down.
  template <class T>
  void give_up(const std::shared_ptr<Pending<T>>& pending) {
    pending->cancel.emit(asio::cancellation_type::terminal);
    EXPECT_TRUE(run_until([&] { return pending->result.has_value(); })) << "is not cancelled";
  }
  template <class T>
  Result<T> finish(const std::shared_ptr<Pending<T>>& pending) {
    EXPECT_TRUE(run_until([&] { return pending->result.has_value(); })) << "no answer in time";
    if (pending->thrown) std::rethrow_exception(pending->thrown);
    return std::move(pending->result).value_or(fail(Errc::timed_out, "no answer in time"));
  }
  template <class T>
  Result<T> await(Task<T> task) {
    return finish(begin(std::move(task)));
  }
  bool run_until(const std::function<bool()>& is_so, std::chrono::milliseconds limit = 110s);

  places::AcquireRequest request();
  // Acquired and recorded, as the engine does.
  places::PlaceRef new_lease();

  asio::io_context loop_;
  asio::thread_pool pool_{2};

 private:
  std::unique_ptr<Ground> ground_;
  std::unique_ptr<places::Place> place_;
};

class CommandContract : public PlaceContract {
 protected:
  void SetUp() override;
  void TearDown() override;

  places::PlaceRef& lease() { return *lease_; }
  const places::Workspace& workspace() const { return workspace_; }
  // In the workspace, with a usual PATH.
  places::Command command(std::vector<std::string> argv);
  places::Command shell(std::string script) { return command({"sh", "-c", std::move(script)}); }

  places::Started start(const places::Command& command);
  std::shared_ptr<Pending<places::Ended>> begin_follow(const std::string& exec_id,
                                                       Collected& output, std::uint64_t offset = 0);
  places::Ended follow(const std::string& exec_id, Collected& output, std::uint64_t offset = 0);
  places::Ended run(const places::Command& command, Collected& output);
  // The first number in a command's output, translated to a pid on this machine.
  pid_t pid_in(const Collected& output);
  // The same for a command itself; 0 if the place does not report it.
  pid_t pid_of(const places::Started& started);

 private:
  std::optional<places::PlaceRef> lease_;
  places::Workspace workspace_;
  int last_id_ = 0;
};

// One suite for each further ability.
class FilesContract : public CommandContract {};
class UsageContract : public CommandContract {};
class PortsContract : public CommandContract {};
class EgressContract : public CommandContract {};
class SnapshotsContract : public CommandContract {};
class FreezerContract : public CommandContract {};

}  // namespace berth::place_test
