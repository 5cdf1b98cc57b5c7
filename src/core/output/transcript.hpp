#pragma once

#include "core/output/agent_output.hpp"
#include "core/rows/run.hpp"

// An agent's work in one run, for people: built from the run's events.
namespace berth::core {

BOOST_DEFINE_ENUM_CLASS(TranscriptKind, prompt, message, thinking, tool_call, tool_result, notice,
                        error, output)

struct TranscriptEntry {
  std::int64_t seq = 0;  // of the source event
  Time at = {};
  TranscriptKind kind = TranscriptKind::message;
  EventLevel level = EventLevel::info;
  std::string text = {};
  std::optional<std::string> tool_id = {};  // the same for a call and its result
  std::optional<std::string> tool_name = {};
  std::optional<std::string> command = {};  // what the tool was asked to do, in one line
  std::optional<bj::value> input = {};      // the complete input
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::string> parent_id = {};  // the subagent call that this belongs to

  friend bool operator==(const TranscriptEntry&, const TranscriptEntry&) = default;
};
BOOST_DESCRIBE_STRUCT(TranscriptEntry, (),
                      (seq, at, kind, level, text, tool_id, tool_name, command, input, exit_code,
                       parent_id))

// A page of the transcript, and what is known about the run so far.
struct Transcript {
  RunId run_id;
  std::optional<AgentId> agent_id = {};
  std::optional<std::string> agent_name = {};
  std::optional<AdapterType> adapter_type = {};  // absent: the run has no agent
  RunState status = RunState::queued;
  std::optional<std::string> model = {};
  std::optional<std::string> session_id = {};
  std::optional<std::string> resumed_session_id = {};
  std::optional<std::string> result = {};
  std::optional<std::string> error = {};
  std::optional<std::string> error_code = {};
  std::optional<AgentUsage> usage = {};
  std::optional<double> cost_usd = {};
  std::vector<TranscriptEntry> entries = {};
  std::int64_t next_seq = 0;  // `afterSeq` of the next page
  bool complete = false;      // the run has ended, and this is the last page
};
BOOST_DESCRIBE_STRUCT(Transcript, (),
                      (run_id, agent_id, agent_name, adapter_type, status, model, session_id,
                       resumed_session_id, result, error, error_code, usage, cost_usd, entries,
                       next_seq, complete))

// Absent for events that are not about the agent's work. A turn's result is also absent, because it
// repeats the last message.
std::optional<TranscriptEntry> transcript_entry(const RunEventRecord& event);

// The facts about a run, without entries.
Transcript transcript_of(const Run& run);

}  // namespace berth::core
