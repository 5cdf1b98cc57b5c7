#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"
#include "core/lifecycle.hpp"
#include "core/placement.hpp"

// One execution, as the store keeps it and the API shows it (a `heartbeat run` on the wire).
namespace berth::core {

struct TerminalSize {
  std::int64_t columns = 80;
  std::int64_t rows = 24;

  friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};
BOOST_DESCRIBE_STRUCT(TerminalSize, (), (columns, rows))

// The command to execute. Variables appear by name; their values and the stdin bytes are in
// RunInput.
struct RunCommand {
  std::vector<std::string> argv = {};
  std::optional<std::string> cwd = {};  // absent: the lease's workspace
  std::vector<std::string> env_names = {};
  std::int64_t stdin_bytes = 0;
  bool stdin_open = false;                         // more may follow while it runs
  std::optional<std::int64_t> timeout_ms = {};     // absent: none
  std::int64_t grace_ms = 15'000;                  // from SIGTERM to SIGKILL
  std::optional<TerminalSize> terminal = {};       // absent: pipes
  std::optional<std::string> prompt_excerpt = {};  // the first line of an agent's prompt

  friend bool operator==(const RunCommand&, const RunCommand&) = default;
};
BOOST_DESCRIBE_STRUCT(RunCommand, (),
                      (argv, cwd, env_names, stdin_bytes, stdin_open, timeout_ms, grace_ms,
                       terminal, prompt_excerpt))

// What a caller gave to a run and the API never shows. It is kept as long as the run, so that a
// retry repeats the whole request.
struct RunInput {
  RunId run_id;
  bj::object env = {};  // canonical bindings: plain values and secret ids
  std::string stdin_text = {};
  // The command if the caller gave one; absent if the agent's adapter builds it.
  std::optional<RunCommand> command = {};
};
BOOST_DESCRIBE_STRUCT(RunInput, (), (run_id, env, stdin_text, command))

// Where a run goes and why: a reason code for programs and a sentence for people.
struct ChosenEnvironment {
  EnvironmentId environment_id;
  ChoiceReason reason = ChoiceReason::local;
  std::string explanation = {};
  // The run from which its agent started this one. When this run begins, its environment must still
  // be as isolated as the place of that run.
  std::optional<RunId> calling_run_id = {};

  friend bool operator==(const ChosenEnvironment&, const ChosenEnvironment&) = default;
};
BOOST_DESCRIBE_STRUCT(ChosenEnvironment, (), (environment_id, reason, explanation, calling_run_id))

ChosenEnvironment explain_choice(const Environment& environment, ChoiceReason reason);

BOOST_DEFINE_ENUM_CLASS(RunPhase, queued, acquire, realize, execute, sync_back, release)

struct PhaseTimes {
  RunPhase phase = RunPhase::queued;
  Time started_at = {};
  std::optional<Time> finished_at = {};

  friend bool operator==(const PhaseTimes&, const PhaseTimes&) = default;
};
BOOST_DESCRIBE_STRUCT(PhaseTimes, (), (phase, started_at, finished_at))

// Ends the open phase, if any, and begins the next: the timeline has no gaps. A phase that is
// entered again, as after a server restart, keeps its first start time.
void enter_phase(std::vector<PhaseTimes>& phases, RunPhase next, Time now);
void end_phases(std::vector<PhaseTimes>& phases, Time now);

struct Run {
  RunId id;
  CompanyId company_id;
  std::optional<AgentId> agent_id = {};  // absent: a command without an agent
  std::optional<EnvironmentId> environment_id = {};
  std::optional<LeaseId> lease_id = {};
  std::optional<NodeId> node_id = {};  // the server that works on it; absent while queued
  InvocationSource invocation_source = InvocationSource::on_demand;
  std::optional<TriggerDetail> trigger_detail = {};
  RunState status = RunState::queued;
  std::optional<RunCommand> command = {};  // absent until an agent's command is built
  std::optional<ChosenEnvironment> environment_choice = {};
  std::vector<PhaseTimes> phases = {};
  std::optional<std::string> error = {};
  std::optional<std::string> error_code = {};
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::string> signal = {};  // "SIGKILL"
  std::optional<bj::object> usage_json = {};
  std::optional<bj::object> result_json = {};
  std::optional<std::string> session_id_before = {};
  std::optional<std::string> session_id_after = {};
  std::int64_t log_bytes = 0;
  std::optional<std::string> log_sha256 = {};
  std::optional<Time> log_removed_at = {};  // the log expired, or an operator deleted it
  std::optional<std::string> stdout_excerpt = {};
  std::optional<std::string> stderr_excerpt = {};
  std::optional<std::int64_t> process_pid = {};
  std::optional<std::int64_t> process_group_id = {};
  std::optional<Time> process_started_at = {};
  std::optional<Time> last_output_at = {};
  std::int64_t last_output_seq = 0;
  std::optional<RunId> retry_of_run_id = {};
  std::optional<std::string> name = {};  // given by its caller; several runs may share one
  std::optional<std::string> responsible_user_id = {};  // the responsible user, as in the activity
  bj::object context_snapshot = {};
  std::optional<Time> cancel_requested_at =
      {};  // the intent; the status follows when the process tree has ended
  std::optional<Time> started_at = {};
  std::optional<Time> finished_at = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(Run, (),
                      (id, company_id, agent_id, environment_id, lease_id, node_id,
                       invocation_source, trigger_detail, status, command, environment_choice,
                       phases, error, error_code, exit_code, signal, usage_json, result_json,
                       session_id_before, session_id_after, log_bytes, log_sha256, log_removed_at,
                       stdout_excerpt, stderr_excerpt, process_pid, process_group_id,
                       process_started_at, last_output_at, last_output_seq, retry_of_run_id, name,
                       responsible_user_id, context_snapshot, cancel_requested_at, started_at,
                       finished_at, created_at, updated_at))

BOOST_DEFINE_ENUM_CLASS(WaitReason, agent_paused, agent_limit, environment_limit, company_quota,
                        server_limit)

// A queued run's position and what it waits for.
struct QueuePlace {
  std::int64_t position = 1;  // among runs that wait for the same thing; 1 starts next
  WaitReason reason = WaitReason::server_limit;
  std::string explanation = {};

  friend bool operator==(const QueuePlace&, const QueuePlace&) = default;
};
BOOST_DESCRIBE_STRUCT(QueuePlace, (), (position, reason, explanation))

// A run in an API response: its row, and its current queue position.
struct RunDetail : Run {
  std::optional<QueuePlace> queue = {};
};
BOOST_DESCRIBE_STRUCT(RunDetail, (Run), (queue))

// Something that happened to a run, ordered by `seq`, from which the event stream can resume.
struct RunEventRecord {
  std::int64_t id = 0;
  CompanyId company_id;
  RunId run_id;
  std::optional<AgentId> agent_id = {};
  std::int64_t seq = 0;         // starts at 1, no gaps within a run
  std::string event_type = {};  // "lifecycle", "adapter.invoke", "agent.tool_call", ...
  EventStream stream = EventStream::system;
  EventLevel level = EventLevel::info;
  std::string message = {};
  std::optional<bj::object> payload = {};
  Time created_at = {};
};
BOOST_DESCRIBE_STRUCT(RunEventRecord, (),
                      (id, company_id, run_id, agent_id, seq, event_type, stream, level, message,
                       payload, created_at))

}  // namespace berth::core
