#include "core/agent_output.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace berth::core {
namespace {

using Events = std::vector<AgentEvent>;

const bj::value* find(const bj::object& object, std::string_view key) {
  return object.if_contains(key);
}

const bj::object* object_at(const bj::object& object, std::string_view key) {
  const bj::value* value = find(object, key);
  return value != nullptr ? value->if_object() : nullptr;
}

std::string_view view_at(const bj::object& object, std::string_view key) {
  const bj::value* value = find(object, key);
  if (value == nullptr || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}

std::optional<std::string> text_at(const bj::object& object, std::string_view key,
                                   std::size_t bytes_max) {
  const std::string_view text = clipped(view_at(object, key), bytes_max);
  return text.empty() ? std::nullopt : std::optional{storable(text)};
}

// Another text than an id is as if none was told: what the program says goes into the arguments of
// its next run.
std::optional<std::string> session_at(const bj::object& object, std::string_view key) {
  const std::string_view text = view_at(object, key);
  return is_session_id(text) ? std::optional{std::string{text}} : std::nullopt;
}

bj::string name_at(const bj::object& object, std::string_view key) {
  return bj::string(text_at(object, key, agent_name_bytes_max).value_or(""));
}

// Token counts of programs that we do not control: what is no sane number counts as none.
std::int64_t count_at(const bj::object& object, std::string_view key) {
  const bj::value* value = find(object, key);
  if (value == nullptr || !value->is_number()) return 0;
  const auto number = value->to_number<double>();
  return number > 0 && number < 1e15 ? static_cast<std::int64_t>(number) : 0;
}

bool is_true(const bj::object& object, std::string_view key) {
  const bj::value* value = find(object, key);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::string short_text(std::string_view text) {
  return storable(clipped(text, event_text_bytes_max));
}

// A part of a foreign document for the payload of an event: as it is, or as text that was cut.
bj::value short_value(const bj::value* value) {
  if (value == nullptr) return nullptr;
  const std::string text = encode_text(*value);
  if (text.size() <= event_text_bytes_max) return *value;
  return bj::string(short_text(text));
}

AgentEvent event(AgentEventKind kind, std::string_view message, bj::object payload = {}) {
  const bool is_error = kind == AgentEventKind::error;
  return {.kind = kind,
          .level = is_error ? EventLevel::error : EventLevel::info,
          .message = short_text(message),
          .payload = std::move(payload)};
}

std::optional<AgentEvent> claude_block(const bj::object& block) {
  const std::string_view type = view_at(block, "type");
  if (type == "text") return event(AgentEventKind::assistant, view_at(block, "text"));
  if (type == "thinking") return event(AgentEventKind::thinking, view_at(block, "thinking"));
  if (type == "tool_use") {
    return event(AgentEventKind::tool_call, view_at(block, "name"),
                 {{"id", name_at(block, "id")}, {"input", short_value(find(block, "input"))}});
  }
  if (type != "tool_result") return std::nullopt;
  AgentEvent result = event(
      AgentEventKind::tool_result, "",
      {{"id", name_at(block, "tool_use_id")}, {"content", short_value(find(block, "content"))}});
  if (is_true(block, "is_error")) result.level = EventLevel::warn;
  return result;
}

AgentUsage claude_usage(const bj::object& usage) {
  return {.input_tokens = count_at(usage, "input_tokens"),
          .cached_input_tokens = count_at(usage, "cache_read_input_tokens"),
          .output_tokens = count_at(usage, "output_tokens")};
}

Events claude_result(const bj::object& line, AgentOutcome& outcome) {
  outcome.result = text_at(line, "result", result_bytes_max);
  if (const bj::object* usage = object_at(line, "usage")) outcome.usage = claude_usage(*usage);
  if (const bj::value* cost = find(line, "total_cost_usd"); cost != nullptr && cost->is_number()) {
    const auto usd = cost->to_number<double>();
    if (usd >= 0 && usd < 1e12) outcome.cost_usd = usd;
  }
  bj::object payload{{"subtype", name_at(line, "subtype")},
                     {"turns", count_at(line, "num_turns")},
                     {"usage", encode(outcome.usage)},
                     {"costUsd", encode(outcome.cost_usd)}};
  if (!is_true(line, "is_error")) {
    return {event(AgentEventKind::result, outcome.result.value_or(""), std::move(payload))};
  }
  outcome.error = text_at(line, "result", event_text_bytes_max);
  if (!outcome.error) outcome.error = text_at(line, "subtype", agent_name_bytes_max);
  return {event(AgentEventKind::error, outcome.error.value_or("the agent reports an error"),
                std::move(payload))};
}

// An empty list: a line that is none of ours.
Events read_claude(const bj::object& line, AgentOutcome& outcome) {
  const std::string_view type = view_at(line, "type");
  if (const auto session = session_at(line, "session_id")) outcome.session_id = session;
  if (type == "system" && view_at(line, "subtype") == "init") {
    outcome.model = text_at(line, "model", agent_name_bytes_max);
    return {event(AgentEventKind::session, outcome.session_id.value_or(""),
                  {{"sessionId", encode(outcome.session_id)}, {"model", encode(outcome.model)}})};
  }
  if (type == "result") return claude_result(line, outcome);
  if (type != "assistant" && type != "user") return {};
  const bj::object* message = object_at(line, "message");
  const bj::value* content = message != nullptr ? find(*message, "content") : nullptr;
  if (content == nullptr || !content->is_array()) return {};
  Events out;
  for (const bj::value& block : content->get_array()) {
    if (!block.is_object()) continue;
    // What a user's turn says in text is our own prompt.
    auto found = claude_block(block.get_object());
    if (found && (type == "assistant" || found->kind == AgentEventKind::tool_result)) {
      out.push_back(*std::move(found));
    }
  }
  return out;
}

enum class ItemStage { started, completed };

Events codex_item(const bj::object& item, ItemStage stage, AgentOutcome& outcome) {
  const std::string_view type = view_at(item, "type");
  const bj::value id = name_at(item, "id");
  if (type == "command_execution") {
    if (stage == ItemStage::started) {
      return {event(AgentEventKind::tool_call, view_at(item, "command"), {{"id", id}})};
    }
    return {event(AgentEventKind::tool_result, "",
                  {{"id", id},
                   {"command", bj::string(short_text(view_at(item, "command")))},
                   {"exitCode", short_value(find(item, "exit_code"))},
                   {"content", short_value(find(item, "aggregated_output"))}})};
  }
  if (stage == ItemStage::started) return {};
  if (type == "agent_message") {
    outcome.result = text_at(item, "text", result_bytes_max);
    return {event(AgentEventKind::assistant, view_at(item, "text"))};
  }
  if (type == "reasoning") return {event(AgentEventKind::thinking, view_at(item, "text"))};
  if (type == "error") return {event(AgentEventKind::error, view_at(item, "message"))};
  if (type == "file_change" || type == "mcp_tool_call" || type == "web_search") {
    const bj::value whole = item;
    return {event(AgentEventKind::tool_call, type, {{"id", id}, {"input", short_value(&whole)}})};
  }
  return {};
}

Events codex_failure(const bj::object& holder, AgentOutcome& outcome) {
  outcome.error =
      text_at(holder, "message", event_text_bytes_max).value_or("the agent reports an error");
  return {event(AgentEventKind::error, *outcome.error)};
}

Events read_codex(const bj::object& line, AgentOutcome& outcome) {
  const std::string_view type = view_at(line, "type");
  if (type == "thread.started") {
    outcome.session_id = session_at(line, "thread_id");
    return {event(AgentEventKind::session, outcome.session_id.value_or(""),
                  {{"sessionId", encode(outcome.session_id)}})};
  }
  const bj::object* item = object_at(line, "item");
  if (type == "item.started" && item != nullptr)
    return codex_item(*item, ItemStage::started, outcome);
  if (type == "item.completed" && item != nullptr)
    return codex_item(*item, ItemStage::completed, outcome);
  if (type == "turn.completed") {
    AgentUsage total = outcome.usage.value_or(AgentUsage{});  // each turn reports its own
    if (const bj::object* usage = object_at(line, "usage")) {
      total.input_tokens += count_at(*usage, "input_tokens");
      total.cached_input_tokens += count_at(*usage, "cached_input_tokens");
      total.output_tokens += count_at(*usage, "output_tokens");
    }
    outcome.usage = total;
    return {event(AgentEventKind::result, outcome.result.value_or(""), {{"usage", encode(total)}})};
  }
  if (type == "error") return codex_failure(line, outcome);
  const bj::object* failure = object_at(line, "error");
  return type == "turn.failed" && failure != nullptr ? codex_failure(*failure, outcome) : Events{};
}

std::string_view without_cr(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
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
  Events found;
  if (!is_too_long_ && line.starts_with('{')) {
    const Result<bj::value> value = parse_json(line);
    if (value && value->is_object()) {
      const bj::object& object = value->get_object();
      found = adapter_ == AdapterType::claude_local ? read_claude(object, outcome_)
                                                    : read_codex(object, outcome_);
    }
  }
  if (found.empty()) found.push_back(event(AgentEventKind::raw, line));
  std::ranges::move(found, std::back_inserter(out));
}

std::vector<AgentEvent> AgentOutput::push(std::string_view chunk) {
  Events out;
  if (adapter_ == AdapterType::process) return out;
  while (!chunk.empty()) {
    const std::size_t end = chunk.find('\n');
    const std::string_view piece = chunk.substr(0, end);
    const std::size_t room = agent_line_bytes_max - line_.size();
    line_ += piece.substr(0, room);
    is_too_long_ = is_too_long_ || piece.size() > room;
    if (end == std::string_view::npos) return out;
    read_line(line_, out);
    line_.clear();
    is_too_long_ = false;
    chunk.remove_prefix(end + 1);
  }
  return out;
}

std::vector<AgentEvent> AgentOutput::finish() {
  Events out;
  read_line(std::exchange(line_, {}), out);
  is_too_long_ = false;
  return out;
}

}  // namespace berth::core
