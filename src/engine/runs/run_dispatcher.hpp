#pragma once

#include "engine/runs/run_job.hpp"
#include "engine/runs/run_queue.hpp"
#include "engine/runs/run_secrets.hpp"

#include <map>
#include <set>

namespace berth::engine {

// For whoever watches the server.
struct RunCounts {
  std::int64_t active = 0;
  std::map<core::RunState, std::int64_t> ended = {};  // since this server started
};

// Where runs are carried out: takes them from the queue as there is room, and takes over those
// whose server is gone. It ends without ending them: a keeper holds each command, and the next
// server goes on. One thread.
class RunDispatcher final : public RedactionSink {
 public:
  RunDispatcher(WorkTools tools, const Catalog& catalog)
      : tools_(std::move(tools)),
        catalog_(catalog),
        news_(tools_.executor),
        work_(tools_.executor) {}

  // Under which addresses processes reach this server: known when it listens.
  void reachable_as(std::string api_url, std::vector<std::string> candidates);
  // Until it is cancelled.
  Task<> dispatch();
  // A run is being queued: it is taken without a look whether there is one. Said before the store
  // has answered, so that a store which gathers transactions commits both at once.
  void expect_new();
  // A run was queued, and may have been taken by now.
  void take_new(const core::RunId& run);
  // There may be something to take.
  void poke();
  // Takes over runs of fenced nodes; ends those that nobody can reach any more.
  Task<> adopt_orphans();
  // Every command lives on as long as this server does, and learns of a cancel that another server
  // took. `has_peers`: whether other servers take runs too.
  void after_beat(bool has_peers);
  Task<> stop();

  bool has(const core::RunId& run) const { return live_.contains(run); }
  // Whether it works on the run, and the run has not come to its end.
  bool is_before_end(const core::RunId& run) const;
  void cancel(const core::RunId& run);
  Task<> send(core::RunId run, drivers::Input input);
  void hide(const core::RunId& run, const Secret& value) override;
  RunCounts counts() const { return {static_cast<std::int64_t>(live_.size()), ended_}; }
  QueueLimits limits() const {
    return {static_cast<std::int64_t>(live_.size()), tools_.options.runs_max, has_peers_,
            tools_.homes != nullptr ? tools_.homes->place() : ""};
  }

 private:
  void wake();
  Task<> take_queued();
  // A store that goes away while it commits may have made a claim whose answer never came: such a
  // run is this server's, and nobody works on it.
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
  bool is_unsure_ = false;  // a claim has failed, or only its answer
  std::map<core::RunState, std::int64_t> ended_;
  asio::steady_timer news_;
  bool has_news_ = true;
  bool has_queued_ = false;
  bool must_look_ = true;
  std::set<core::RunId> queued_;  // of those that have come, who were not seen to be taken
  TaskGroup work_;
};

}  // namespace berth::engine
