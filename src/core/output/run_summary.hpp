#pragma once

#include "core/rows/run.hpp"

namespace berth::core {

// A run's row as lists read it: without its output, its result and its input.
struct ListedRun {
  RunId id;
  CompanyId company_id;
  std::optional<AgentId> agent_id = {};
  std::optional<EnvironmentId> environment_id = {};
  std::optional<LeaseId> lease_id = {};
  RunState status = RunState::queued;
  InvocationSource invocation_source = InvocationSource::on_demand;
  std::optional<std::string> name = {};
  std::optional<RunCommand> command = {};
  std::optional<std::string> error = {};
  std::optional<std::string> error_code = {};
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::string> signal = {};
  std::optional<bj::object> usage_json = {};
  std::optional<RunId> retry_of_run_id = {};
  std::optional<Time> cancel_requested_at = {};
  std::optional<Time> started_at = {};
  std::optional<Time> finished_at = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(ListedRun, (),
                      (id, company_id, agent_id, environment_id, lease_id, status,
                       invocation_source, name, command, error, error_code, exit_code, signal,
                       usage_json, retry_of_run_id, cancel_requested_at, started_at, finished_at,
                       created_at, updated_at))

// A run in a list. Every text in it is short, so that a page of runs remains small however long
// their commands are.
struct RunSummary {
  RunId id;
  CompanyId company_id;
  std::optional<AgentId> agent_id = {};
  std::optional<EnvironmentId> environment_id = {};
  std::optional<LeaseId> lease_id = {};
  RunState status = RunState::queued;
  InvocationSource invocation_source = InvocationSource::on_demand;
  std::optional<std::string> name = {};
  std::string title = {};  // the agent's prompt, or the command; empty until it is built
  std::optional<std::string> error = {};
  std::optional<std::string> error_code = {};
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::string> signal = {};
  std::optional<bj::object> usage_json = {};
  std::optional<RunId> retry_of_run_id = {};
  std::optional<Time> cancel_requested_at = {};
  std::optional<Time> started_at = {};
  std::optional<Time> finished_at = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(RunSummary, (),
                      (id, company_id, agent_id, environment_id, lease_id, status,
                       invocation_source, name, title, error, error_code, exit_code, signal,
                       usage_json, retry_of_run_id, cancel_requested_at, started_at, finished_at,
                       created_at, updated_at))

RunSummary summary_of(ListedRun run);

// A command as a user would type it, in one line: `sh -c SCRIPT` becomes the script.
std::string title_of(const std::vector<std::string>& argv);

}  // namespace berth::core
