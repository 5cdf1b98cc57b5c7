#pragma once

#include "base/result.hpp"
#include "core/output/agent_output.hpp"

// Why an agent's program failed, as a sentence and a code that programs can branch on.
namespace berth::core {

struct AgentFailureFacts {
  AdapterType adapter = AdapterType::process;
  AgentOutcome outcome = {};
  AgentSigns signs = {};
  std::string stderr_text = {};  // the end of it
  // Hosts that the place's egress rules denied while the program ran, with the rule.
  std::vector<std::string> denials = {};
};

// What the program reported about its failure: its own result, then its last warning, then the last
// line on stderr. Absent when it reported nothing.
std::optional<std::string> failure_text(const AgentFailureFacts& facts);

// The same with its code and remedy; `command_failed` when the cause has no code of its own.
std::optional<Error> explain_failure(const AgentFailureFacts& facts);

}  // namespace berth::core
