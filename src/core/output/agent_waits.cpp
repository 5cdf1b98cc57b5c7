#include "core/output/agent_waits.hpp"

#include <algorithm>

namespace berth::core {
namespace {

// Both lines are short, and their distinguishing part is at the start.
constexpr std::size_t head_bytes_max = 1024;

bool says_waiting(AdapterType adapter, std::string_view line) {
  if (adapter == AdapterType::claude_local) return line.contains(R"("subtype":"api_retry")");
  return line.contains(R"("type":"error")") && line.contains("Reconnecting...");
}

}  // namespace

void AgentWaits::push(std::string_view chunk, Time at) {
  if (adapter_ == AdapterType::process) return;
  while (!chunk.empty()) {
    const std::size_t end = chunk.find('\n');
    const std::string_view piece = chunk.substr(0, end);
    head_ += piece.substr(0, head_bytes_max - std::min(head_bytes_max, head_.size()));
    if (end == std::string_view::npos) return;
    read_line(at);
    head_.clear();
    chunk.remove_prefix(end + 1);
  }
}

void AgentWaits::read_line(Time at) {
  if (head_.find_first_not_of(" \t\r") == std::string::npos) return;
  if (!says_waiting(adapter_, head_)) {
    since_.reset();
  } else if (!since_) {
    since_ = at;
  }
}

}  // namespace berth::core
