#pragma once

#include "base/time.hpp"
#include "core/enums.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace berth::core {

// Whether an agent's program makes progress, or only retries to reach its model: `system/api_retry`
// of Claude Code, "Reconnecting..." of Codex. Codex retries forever, Claude Code for minutes.
class AgentWaits {
 public:
  explicit AgentWaits(AdapterType adapter) : adapter_(adapter) {}

  void push(std::string_view chunk, Time at);
  // Since when it has only retried; empty while it works.
  const std::optional<Time>& since() const { return since_; }

 private:
  void read_line(Time at);

  AdapterType adapter_;
  std::string head_;  // the start of the current line
  std::optional<Time> since_;
};

}  // namespace berth::core
