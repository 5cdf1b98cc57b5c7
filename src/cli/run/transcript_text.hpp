#pragma once

#include "base/json/json.hpp"
#include "core/output/agent_output.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::cli {

// How the work of an agent stands on a terminal.
struct TranscriptLook {
  bool colour = false;
  std::size_t result_lines_max = 12;  // of a tool; the rest is counted
};

// Turns what an agent's program prints into text for people, as it comes: messages, tool calls with
// their commands and results, warnings.
class TranscriptText {
 public:
  TranscriptText(core::AdapterType adapter, TranscriptLook look) : output_(adapter), look_(look) {}

  std::string push(std::string_view bytes);
  // What had no end of line.
  std::string finish();

 private:
  std::string text_of_events(const std::vector<core::AgentEvent>& events);

  core::AgentOutput output_;
  TranscriptLook look_;
};

// What the agent was asked, for those who did not ask it themselves.
std::string prompt_text(std::string_view prompt, const TranscriptLook& look);

// One line on model, tokens, cost and session of a run; empty when nothing is known.
std::string numbers_line(const bj::value& run);

}  // namespace berth::cli
