#pragma once

#include "core/call.hpp"
#include "core/output/transcript.hpp"
#include "core/page.hpp"
#include "core/rows/node.hpp"
#include "core/rows/run.hpp"
#include "engine/runs/run_limits.hpp"
#include "engine/runs/run_log.hpp"
#include "engine/services.hpp"
#include "places/place.hpp"
#include "store/runs.hpp"

namespace berth::engine {

using store::RunFilter;

class Catalog;
class RunDispatcher;

// A command in an environment, with or without an agent.
struct StartRun {
  std::optional<core::EnvironmentId> environment_id = {};
  std::optional<core::AgentId> agent_id = {};
  std::string command;
  std::optional<std::vector<std::string>> args = {};
  std::optional<std::string> cwd = {};
  std::optional<bj::object> env = {};  // names to plain strings or secret references
  std::optional<std::string> stdin_text = {};
  std::optional<bool> stdin_open = {};  // stdin comes through the run's socket
  std::optional<std::int64_t> timeout_ms = {};
  std::optional<std::int64_t> grace_ms = {};
  std::optional<core::TerminalSize> terminal = {};
  std::optional<std::string> name = {};  // for users to find it again; not unique
};
BOOST_DESCRIBE_STRUCT(StartRun, (),
                      (environment_id, agent_id, command, args, cwd, env, stdin_text, stdin_open,
                       timeout_ms, grace_ms, terminal, name))

// A turn of an agent.
struct InvokeAgent {
  std::optional<core::InvocationSource> source = {};
  std::optional<core::TriggerDetail> trigger_detail = {};
  std::optional<std::string> reason = {};
  std::optional<bj::object> payload = {};
  std::optional<std::string> prompt = {};  // replaces the agent's template
  std::optional<core::EnvironmentId> environment_id = {};
  std::optional<bj::object> env = {};
  std::optional<bool> force_fresh_session = {};
  std::optional<std::string> name = {};
};
BOOST_DESCRIBE_STRUCT(InvokeAgent, (),
                      (source, trigger_detail, reason, payload, prompt, environment_id, env,
                       force_fresh_session, name))

struct EnvironmentBrief {
  core::EnvironmentId id;
  std::string name;
  core::DriverKind driver;
};
BOOST_DESCRIBE_STRUCT(EnvironmentBrief, (), (id, name, driver))

struct LeaseBrief {
  core::LeaseId id;
  core::LeaseState status;
  core::LeasePolicy lease_policy;
  std::optional<std::string> provider;
  std::optional<std::string> provider_lease_id;
  std::optional<std::string> failure_reason;
  std::optional<core::CleanupStatus> cleanup_status;
  Time acquired_at;
  std::optional<Time> released_at;
};
BOOST_DESCRIBE_STRUCT(LeaseBrief, (),
                      (id, status, lease_policy, provider, provider_lease_id, failure_reason,
                       cleanup_status, acquired_at, released_at))

struct RunView : core::RunDetail {
  std::optional<EnvironmentBrief> environment = {};
  std::optional<LeaseBrief> environment_lease = {};
  std::optional<core::NodeBrief> server = {};  // works on it, or did: it has the log
};
BOOST_DESCRIBE_STRUCT(RunView, (core::RunDetail), (environment, environment_lease, server))

// What a caller waits for in the life of a run.
BOOST_DEFINE_ENUM_CLASS(RunMoment,
                        change,   // its next state change
                        end,      // its state is final, and its log complete
                        release)  // its place was also given back, or is kept for inspection

// What a reader of a live log gets: the available output, and whether more can come.
struct LogNews {
  LogBlock block = {};
  std::int64_t next_offset = 0;
  bool complete = false;  // the run is final and these are the last bytes
};

// The requested part of a transcript.
struct TranscriptRead {
  std::int64_t after_seq = 0;
  std::int64_t limit = 200;           // number of events
  std::chrono::milliseconds wait{0};  // if there is nothing yet
};

using RunInputPiece = places::Input;

// The use cases of runs: requesting and viewing them. RunDispatcher executes them.
class Runs {
 public:
  Runs(Services& services, const Catalog& catalog, RunLogs& logs, RunDispatcher& dispatcher,
       core::NodeId node, Guards& guards)
      : services_(services),
        catalog_(catalog),
        logs_(logs),
        dispatcher_(dispatcher),
        node_(std::move(node)),
        guards_(guards) {}

  Task<core::Run> start(core::Call call, core::CompanyId company, StartRun wanted);
  Task<core::Run> invoke(core::Call call, core::AgentId agent, InvokeAgent wanted);
  // Repeats the original request; only for a run that has ended.
  Task<core::Run> retry(core::Call call, core::RunId id);
  // Records the request at once; the status follows when the process tree has ended. A run that has
  // ended is returned as it is.
  Task<core::Run> cancel(core::Call call, core::RunId id);
  // Deletes a run that has ended, with its log and its events.
  Task<core::Run> remove(core::Call call, core::RunId id);

  Task<core::Listing<core::RunSummary>> list(core::Call call, core::CompanyId company,
                                             RunFilter filter, core::PageRequest page);
  // What a list that was read before has to be told. Goes by the filter's agent and environment.
  Task<core::Listing<core::RunSummary>> changes(core::Call call, core::CompanyId company,
                                                RunFilter filter, Time since, std::int64_t limit);
  // With a wait, answers when the moment has come, at the latest when the wait ends.
  Task<RunView> get(core::Call call, core::RunId id, std::chrono::milliseconds wait,
                    RunMoment until = RunMoment::change);
  Task<std::vector<core::RunEventRecord>> events(core::Call call, core::RunId id,
                                                 std::int64_t after_seq, std::int64_t limit);
  struct EventNews {
    std::vector<core::RunEventRecord> events = {};
    bool complete = false;
  };
  // The same; waits a while if there is nothing yet. Empty and `complete` means that no more will
  // come.
  Task<EventNews> next_events(core::Call call, core::RunId id, std::int64_t after_seq);

  // The agent's work for people. Pages are also limited in bytes.
  Task<core::Transcript> transcript(core::Call call, core::RunId id, TranscriptRead read);

  Task<LogText> log(core::Call call, core::RunId id, LogRead read);
  // For live readers: waits a while if nothing is past the offset yet.
  Task<LogNews> follow(core::Call call, core::RunId id, std::int64_t offset);
  // Stdin, terminal size and signals for an executing run.
  Task<> send(core::Call call, core::RunId id, RunInputPiece input);

 private:
  using Insert = std::function<Result<core::Run>(store::Session&)>;
  // Puts a run into the queue, and wakes the dispatcher.
  Task<core::Run> queue(const core::Call& call, Insert insert);
  Result<core::LogPage> read_page(const core::RunId& id, const LogRead& read) const;
  // log_unavailable when another server has the log, or will have it: the caller would wait
  // forever.
  Task<> expect_log(const core::Run& run) const;

  Services& services_;
  const Catalog& catalog_;
  RunLogs& logs_;
  RunDispatcher& dispatcher_;
  core::NodeId node_;
  Guards& guards_;
};

}  // namespace berth::engine
