#pragma once

#include "base/json/json.hpp"
#include "core/output/agent_output.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::cli {

// How an agent's work is shown on a terminal.
struct TranscriptLook {
  bool colour = false;
  std::size_t result_lines_max = 12;  // of a tool result; the rest is counted
};

// Turns the output of an agent's program into readable text, as it arrives: messages, tool calls
// with their commands and results, warnings.
class TranscriptText {
 public:
  TranscriptText(core::AdapterType adapter, TranscriptLook look) : output_(adapter), look_(look) {}

  std::string push(std::string_view bytes);
  // The incomplete last line.
  std::string finish();

 private:
  std::string text_of_events(const std::vector<core::AgentEvent>& events);

  core::AgentOutput output_;
  TranscriptLook look_;
};

// The agent's prompt, for users who did not write it.
std::string prompt_text(std::string_view prompt, const TranscriptLook& look);

// One line with a run's model, tokens, cost and session; empty when nothing is known.
std::string numbers_line(const bj::value& run);

}  // namespace berth::cli
