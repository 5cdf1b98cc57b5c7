#pragma once

#include "base/async/task_group.hpp"
#include "contract/boxes.hpp"
#include "contract/engine_fixture.hpp"
#include "places/local/local.hpp"
#include "places/registry.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <functional>
#include <list>

// Runs and leases as the engine carries them out: real stores, real keepers, and a clock that the
// test controls.
namespace berth::engine {

using namespace std::chrono_literals;

// The test sets the date; waits take real time. Any thread may read it.
class HandClock final : public Clock {
 public:
  Time now() const override { return Time{ms_}; }
  Steady steady() const override { return std::chrono::steady_clock::now(); }
  void turn(std::chrono::milliseconds by) { ms_ += by.count(); }

 private:
  std::atomic<std::int64_t> ms_ = 1'700'000'000'000;
};

// What a server is made of.
struct ServerParts {
  asio::io_context& loop;
  asio::thread_pool& pool;
  store::Store& store;
  vault::Vault& vault;
  const Clock& clock;
  Random& random;
  core::Allowances allowed = core::Allowances::all();
};

// A server without its HTTP listener: it has its own drivers, logs and node over the shared store.
// The built-in `fake` is its sandbox provider until use_boxes() is called.
class Server {
 public:
  Server(const ServerParts& parts, const std::string& home, WorkOptions options);

  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  places::Local& local() { return *local_; }
  // From now on sandboxes are these boxes, of a provider `boxes` that runs commands.
  Boxes& use_boxes();
  // The same under another kind, replacing its driver.
  Boxes& use_boxes_for(core::DriverKind kind);
  // Starts taking runs from the queue.
  void open();
  // Stops like a server: commands continue.
  Task<> stop();

 private:
  Feed feed_;
  Services services_;
  places::Registry places_;
  places::Local* local_ = nullptr;
  std::optional<RunLogs> logs_;
  std::unique_ptr<Engine> engine_;
  TaskGroup background_;
};

class WorkContract : public EngineContract {
 protected:
  void SetUp() override;
  void TearDown() override;

  Server& server() { return *servers_.front(); }
  Server& add_server(const std::string& name, WorkOptions options = {});

  // A response that is still awaited.
  template <class T>
  struct Pending {
    std::optional<Result<T>> result = {};
  };
  template <class T>
  std::shared_ptr<Pending<T>> begin(Task<T> task) {
    auto pending = std::make_shared<Pending<T>>();
    asio::co_spawn(loop_, keep(std::move(task), pending->result),
                   [pending](std::exception_ptr thrown, const Result<>&) {
                     if (thrown) std::rethrow_exception(thrown);
                   });
    return pending;
  }
  template <class T>
  Result<T> finish(const std::shared_ptr<Pending<T>>& pending) {
    EXPECT_TRUE(run_until([&] { return pending->result.has_value(); })) << "no answer in time";
    if (!pending->result) return fail(Errc::timed_out, "no answer in time");
    return *std::move(pending->result);
  }
  // The same while everything else continues; EngineContract::run is for a server that stands
  // still.
  template <class T>
  Result<T> await(Task<T> task) {
    return finish(begin(std::move(task)));
  }
  bool run_until(const std::function<bool()>& is_so, std::chrono::milliseconds limit = 60s);

  // One pass of the sweeper, and everything that it started.
  void sweep(Server& by);
  void sweep() { sweep(server()); }

  // Rows that the API rejects or has no use case for.
  core::Environment put_environment(core::DriverKind driver, const std::string& name,
                                    bj::object config, std::optional<bj::object> metadata = {});
  core::Environment put_boxes(bj::object config = {}) {
    config["provider"] = "boxes";
    return put_environment(core::DriverKind::sandbox, "boxes", std::move(config));
  }
  core::Run put_run(const core::Environment& environment, core::RunState status);
  void set_metadata(const core::EnvironmentId& id, bj::object metadata);
  core::EnvironmentId local() const { return *local_; }

  // Acquires a lease by hand, as the engine does for a run.
  LeaseLifecycle::Row acquire(const core::Environment& environment, const core::Run& run);
  LeaseLifecycle::Row begin_release(const LeaseLifecycle::Row& row, core::LeaseEvent how);
  LeaseLifecycle::Row release(const LeaseLifecycle::Row& row,
                              core::LeaseEvent how = core::LeaseEvent::release_succeeded);
  core::LeaseRecord lease(const core::LeaseId& id);
  core::Sandbox sandbox(const core::SandboxId& id);
  // Leases that are not over.
  std::int64_t held();

  static StartRun program(std::vector<std::string> argv);
  static StartRun shell(std::string script) { return program({"sh", "-c", std::move(script)}); }
  core::RunId start(StartRun wanted);
  RunView look(const core::RunId& id);
  RunView reaches(const core::RunId& id, core::RunState state);
  // The run, when it is final and its lease is settled, kept or waiting for the sweeper.
  RunView ended(const core::RunId& id);
  RunView ran(StartRun wanted) { return ended(start(std::move(wanted))); }
  std::string output(const core::RunId& id, core::OutputStream stream);
  std::string said(const core::RunId& id) { return output(id, core::OutputStream::stdout_); }
  std::vector<core::RunEventRecord> events(const core::RunId& id);
  // Whether a run's command has printed this.
  bool says(const core::RunId& id, const std::string& text);

  HandClock hand_;
  SystemRandom any_;
  asio::thread_pool pool_{2};
  std::optional<core::CompanyId> company_;

 private:
  std::optional<core::EnvironmentId> local_;
  std::list<std::unique_ptr<Server>> servers_;
};

}  // namespace berth::engine
