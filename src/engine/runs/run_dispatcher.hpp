#pragma once

#include "engine/runs/run_job.hpp"
#include "engine/runs/run_queue.hpp"
#include "engine/runs/run_secrets.hpp"

#include <map>
#include <set>

namespace berth::engine {

// For monitoring.
struct RunCounts {
  std::int64_t active = 0;
  std::map<core::RunState, std::int64_t> ended = {};  // since this server started
};

// Executes runs: takes them from the queue as capacity allows, and takes over those of dead
// servers. Stopping it does not end the runs: a keeper holds each command, and the next server
// continues. Single-threaded.
class RunDispatcher final : public RedactionSink {
 public:
  RunDispatcher(WorkTools tools, const Catalog& catalog)
      : tools_(std::move(tools)),
        catalog_(catalog),
        news_(tools_.executor),
        work_(tools_.executor) {}

  // The addresses at which processes reach this server, known once it listens.
  void reachable_as(std::string api_url, std::vector<std::string> candidates);
  // Runs until cancelled.
  Task<> dispatch();
  // A run is being queued: the dispatcher claims without checking the queue first. Called before
  // the store has responded, so that a store with group commit commits both at once.
  void expect_new();
  // A run was queued, and may already have been taken.
  void take_new(const core::RunId& run);
  // There may be runs to take.
  void poke();
  // Takes over runs of fenced nodes; ends those that no server can reach any more.
  Task<> adopt_orphans();
  // Renews every command while this server lives, and picks up cancel requests that another server
  // received. `has_peers`: whether other servers take runs too.
  void after_beat(bool has_peers);
  Task<> stop();

  bool has(const core::RunId& run) const { return live_.contains(run); }
  // Whether this server works on the run and the run has not ended.
  bool is_before_end(const core::RunId& run) const;
  void cancel(const core::RunId& run);
  Task<> send(core::RunId run, places::Input input);
  void hide(const core::RunId& run, const Secret& value) override;
  RunCounts counts() const { return {static_cast<std::int64_t>(live_.size()), ended_}; }
  QueueLimits limits() const {
    return {static_cast<std::int64_t>(live_.size()), tools_.options.runs_max, has_peers_,
            tools_.homes != nullptr ? tools_.homes->place() : ""};
  }

 private:
  void wake();
  Task<> take_queued();
  // A store that fails during a commit may have stored a claim whose response was lost. Such a run
  // belongs to this server, but no job works on it.
  Task<> take_unanswered();
  Task<> adopt(core::Stored<core::Run> run);
  Task<> interrupt(core::RunId id);
  Task<> look_for_cancels();
  void start(ClaimedRun claimed);
  Task<> carry(std::shared_ptr<RunJob> work);
  Task<ClaimedRun> look_again(core::RunId id);

  WorkTools tools_;
  const Catalog& catalog_;
  std::map<core::RunId, std::shared_ptr<RunJob>> live_;
  std::set<core::RunId> adopting_;  // about to be in live_
  bool has_peers_ = false;
  bool is_unsure_ = false;  // a claim failed, or only its response was lost
  std::map<core::RunState, std::int64_t> ended_;
  asio::steady_timer news_;
  bool has_news_ = true;
  bool has_queued_ = false;
  bool must_look_ = true;
  std::set<core::RunId> queued_;  // newly queued runs not yet seen as taken
  TaskGroup work_;
};

}  // namespace berth::engine
