#include "core/output/agent_output.hpp"

#include "core/output/agent_line.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace berth::core {
namespace {

using agent_line::Events;

// Larger lines are rare, so their buffer is freed.
constexpr std::size_t kept_line_bytes = 64UL * 1024;

std::string_view without_cr(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

AgentEvent cut_line(std::uint64_t bytes) {
  AgentEvent out = agent_line::event(
      AgentEventKind::notice,
      "A line of " + std::to_string(bytes) + " bytes is too long to be read; lines have at most " +
          std::to_string(agent_line_bytes_max) + " bytes. The log of the run has all of it.",
      {{"lineBytes", bytes}});
  out.level = EventLevel::warn;
  return out;
}

}  // namespace

std::string storable(std::string_view text) {
  std::string out = as_utf8(text);
  std::ranges::replace(out, '\0', '?');
  return out;
}

bool is_session_id(std::string_view text) {
  const auto may_stand = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"._:-"}.contains(c);
  };
  return !text.empty() && text.size() <= session_id_bytes_max && !text.starts_with('-') &&
         std::ranges::all_of(text, may_stand);
}

void AgentOutput::read_line(std::string_view line, Events& out) {
  line = without_cr(line);
  if (line.find_first_not_of(" \t") == std::string_view::npos) return;
  agent_line::Read found;
  const bool is_cut = line_bytes_ > agent_line_bytes_max;
  if (is_cut) out.push_back(cut_line(line_bytes_));
  if (!is_cut && line.starts_with('{')) {
    const Result<bj::value> value = parse_json(line);
    if (value && value->is_object()) {
      const bj::object& object = value->get_object();
      found = adapter_ == AdapterType::claude_local ? agent_line::read_claude(object, reading_)
                                                    : agent_line::read_codex(object, reading_);
    }
  }
  if (!found) found = Events{agent_line::event(AgentEventKind::raw, line)};
  std::ranges::move(*found, std::back_inserter(out));
}

std::vector<AgentEvent> AgentOutput::push(std::string_view chunk) {
  Events out;
  if (adapter_ == AdapterType::process) return out;
  while (!chunk.empty()) {
    const std::size_t end = chunk.find('\n');
    const std::string_view piece = chunk.substr(0, end);
    line_ += piece.substr(0, agent_line_bytes_max - line_.size());
    line_bytes_ += piece.size();
    if (end == std::string_view::npos) return out;
    read_line(line_, out);
    line_.clear();
    if (line_.capacity() > kept_line_bytes) line_.shrink_to_fit();
    line_bytes_ = 0;
    chunk.remove_prefix(end + 1);
  }
  return out;
}

std::vector<AgentEvent> AgentOutput::finish() {
  Events out;
  read_line(std::exchange(line_, {}), out);
  line_bytes_ = 0;
  return out;
}

}  // namespace berth::core
