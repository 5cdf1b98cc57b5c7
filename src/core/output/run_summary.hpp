#pragma once

#include "core/rows/run.hpp"

namespace berth::core {

// A run as a row of the store that lists read: without its output, its answer and what it was
// given.
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

// What a list says of a run. Every text in it is short, so that a page of runs is small whatever
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
  std::string title = {};  // what an agent was asked, or the command; empty until it is built
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

// A command as one would type it, in one line: `sh -c SCRIPT` is the script.
std::string title_of(const std::vector<std::string>& argv);

}  // namespace berth::core
