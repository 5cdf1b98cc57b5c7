#pragma once

#include "engine/leases/lease_lifecycle.hpp"
#include "engine/runs/run_dispatcher.hpp"
#include "engine/templates/setup_sessions.hpp"

namespace berth::engine {

// Owns every lease, sandbox, template and setup session that is not in use: each due one is brought
// a step closer to its end. A failed step waits longer each time. What fails too often is parked
// until an operator decides. Runs on every server; each takes different rows.
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

  // Runs until cancelled.
  Task<> sweep();
  // One pass over what is due; the work it starts continues by itself.
  Task<> sweep_once();
  bool is_idle() const { return work_.size() == 0; }
  Task<> stop() { co_return co_await work_.stop(); }

 private:
  // Removes what this machine still holds for leases and sandboxes whose rows are final: leftovers
  // of a server that was fenced and then killed.
  Task<> sweep_held();
  Task<> sweep_held_sandboxes();
  // Removes templates on this machine's disk that have no row.
  Task<> sweep_held_templates();
  Task<> handle(LeaseLifecycle::Row lease);
  Task<> handle_sandbox(core::Stored<core::Sandbox> sandbox);
  Task<> sweep_setups();
  Task<> handle_template(TemplateCapture::Row row);
  Task<> handle_session(SetupSessions::Row row);
  // Renews a place that is held for a user until it is given back, whichever server acquired it.
  Task<> keep(LeaseLifecycle::Row lease);
  // For a lease whose run has not ended: true when it has been dealt with.
  Task<bool> spare_or_expire(LeaseLifecycle::Row lease);

  Services& services_;
  LeaseLifecycle& leases_;
  TemplateCapture& templates_;
  SetupSessions& sessions_;
  std::set<std::string> under_way_;  // ids of templates and sessions in progress
  RunDispatcher& dispatcher_;
  asio::any_io_executor executor_;
  TaskGroup work_;
};

}  // namespace berth::engine
