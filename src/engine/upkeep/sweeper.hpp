#pragma once

#include "engine/leases/lease_lifecycle.hpp"
#include "engine/runs/run_dispatcher.hpp"
#include "engine/templates/setup_sessions.hpp"

namespace berth::engine {

// The one owner of every lease, sandbox, template and setup session that nobody works with: what is
// due is brought a step towards its end. A failed step waits longer each time, and what fails too
// often is parked, out of the way of others, until an operator decides. Runs on every server; each
// takes different rows.
class Sweeper {
 public:
  struct Work {
    LeaseLifecycle& leases;
    TemplateCapture& templates;
    SetupSessions& sessions;
  };
  Sweeper(Services& services, Work work, RunDispatcher& dispatcher, asio::any_io_executor executor)
      : services_(services),
        leases_(work.leases),
        templates_(work.templates),
        sessions_(work.sessions),
        dispatcher_(dispatcher),
        executor_(executor),
        work_(executor) {}

  // Until it is cancelled.
  Task<> sweep();
  // One look at what is due; what it begins goes on by itself.
  Task<> sweep_once();
  bool is_idle() const { return work_.size() == 0; }
  Task<> stop() { co_return co_await work_.stop(); }

 private:
  // Leases and sandboxes of which this machine still holds something although their rows are final:
  // what a server left behind that was fenced and then killed.
  Task<> sweep_held();
  Task<> sweep_held_sandboxes();
  // Templates on the disk of this machine that no row tells of.
  Task<> sweep_held_templates();
  Task<> handle(LeaseLifecycle::Row lease);
  Task<> handle_sandbox(core::Stored<core::Sandbox> sandbox);
  Task<> sweep_setups();
  Task<> handle_template(TemplateCapture::Row row);
  Task<> handle_session(SetupSessions::Row row);
  // A place that is held for somebody lives until it is given back, whoever took it.
  Task<> keep(LeaseLifecycle::Row lease);
  // A lease whose run is not over: true when it has been dealt with.
  Task<bool> spare_or_expire(LeaseLifecycle::Row lease);

  Services& services_;
  LeaseLifecycle& leases_;
  TemplateCapture& templates_;
  SetupSessions& sessions_;
  std::set<std::string> under_way_;  // ids of templates and sessions that are looked at
  RunDispatcher& dispatcher_;
  asio::any_io_executor executor_;
  TaskGroup work_;
};

}  // namespace berth::engine
