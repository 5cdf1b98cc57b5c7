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
#include <string>
#include <vector>

// What every driver guarantees, as tests that each driver runs. A driver joins with
//   INSTANTIATE_TEST_SUITE_P(Local, DriverContract, testing::Values(&make_local_place));
// and, when it executes commands, the same for CommandContract.
namespace berth::driver_test {

using namespace std::chrono_literals;

// Where a driver works, for the duration of one test. Commands run on this machine, however they
// are reached, so that the test can see their processes.
class DriverPlace {
 public:
  virtual ~DriverPlace() = default;

  // A driver as a server has it; several may follow one another, as after a restart.
  virtual std::unique_ptr<drivers::Driver> make_driver(asio::any_io_executor executor,
                                                       asio::thread_pool& pool) = 0;
  // The environment's config, and the values of its secrets.
  virtual bj::object config() const = 0;
  virtual void add_secrets(drivers::PlaceRef& /*lease*/) const {}
  // The keeper that holds a lease's commands.
  virtual pid_t keeper_of(const drivers::PlaceRef& lease) const = 0;
  // The pid on this machine of the process with that pid inside; 0 when it has ended.
  virtual pid_t pid_here(const drivers::PlaceRef& /*lease*/, pid_t pid_there) const {
    return pid_there;
  }
  // What is left of leases in the place: paths, processes, anything that has a name.
  virtual std::vector<std::string> leftovers() const = 0;
};
using PlaceMaker = std::unique_ptr<DriverPlace> (*)();

// Keeps the output it gets.
class Collected final : public drivers::OutputTaker {
 public:
  Task<> take(std::span<const drivers::OutputPiece> pieces) override;

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

class DriverContract : public testing::TestWithParam<PlaceMaker> {
 protected:
  void SetUp() override;
  void TearDown() override;

  DriverPlace& place() { return *place_; }
  drivers::Driver& driver() { return *driver_; }
  // Simulates the end of the server and the start of another.
  void restart_driver();

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

  drivers::AcquireRequest request();
  // Acquired and recorded, as the engine does.
  drivers::PlaceRef new_lease();

  asio::io_context loop_;
  asio::thread_pool pool_{2};

 private:
  std::unique_ptr<DriverPlace> place_;
  std::unique_ptr<drivers::Driver> driver_;
};

class CommandContract : public DriverContract {
 protected:
  void SetUp() override;
  void TearDown() override;

  drivers::PlaceRef& lease() { return *lease_; }
  const drivers::Workspace& workspace() const { return workspace_; }
  // In the workspace, with a usual PATH.
  drivers::Command command(std::vector<std::string> argv);
  drivers::Command shell(std::string script) { return command({"sh", "-c", std::move(script)}); }

  drivers::Started start(const drivers::Command& command);
  std::shared_ptr<Pending<drivers::Ended>> begin_follow(const std::string& exec_id,
                                                        Collected& output,
                                                        std::uint64_t offset = 0);
  drivers::Ended follow(const std::string& exec_id, Collected& output, std::uint64_t offset = 0);
  drivers::Ended run(const drivers::Command& command, Collected& output);
  // The first number in a command's output, translated to a pid on this machine.
  pid_t pid_in(const Collected& output);
  // The same for a command itself; 0 if the driver does not report it.
  pid_t pid_of(const drivers::Started& started);

 private:
  std::optional<drivers::PlaceRef> lease_;
  drivers::Workspace workspace_;
  int last_id_ = 0;
};

}  // namespace berth::driver_test
