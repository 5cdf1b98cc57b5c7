#pragma once

#include "base/time.hpp"
#include "core/enums.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace berth::core {

// Whether an agent's program gets on, or only tries to reach its model again: `system/api_retry` of
// Claude Code, "Reconnecting..." of Codex. Codex does so for ever, and Claude Code for minutes.
class AgentWaits {
 public:
  explicit AgentWaits(AdapterType adapter) : adapter_(adapter) {}

  void push(std::string_view chunk, Time at);
  // Since when it has said nothing else; nothing while it works.
  const std::optional<Time>& since() const { return since_; }

 private:
  void read_line(Time at);

  AdapterType adapter_;
  std::string head_;  // of the line that is being read
  std::optional<Time> since_;
};

}  // namespace berth::core
