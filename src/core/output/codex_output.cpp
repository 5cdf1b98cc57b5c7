// The output lines of Codex: `exec --json`.
#include "core/output/agent_line.hpp"

namespace berth::core::agent_line {
namespace {

enum class ItemStage { started, completed };

// Item types that are tool calls.
bool is_tool(std::string_view type) {
  return type == "file_change" || type == "mcp_tool_call" || type == "web_search" ||
         type == "collab_tool_call";
}

std::string changes_in(const bj::object& item) {
  std::string out;
  const bj::value* changes = find(item, "changes");
  if (changes == nullptr || !changes->is_array()) return out;
  for (const bj::value& change : changes->get_array()) {
    if (!change.is_object() || out.size() > event_message_bytes_max) continue;
    if (!out.empty()) out += ", ";
    out += view_at(change.get_object(), "kind");
    out += ' ';
    out += clipped(view_at(change.get_object(), "path"), event_message_bytes_max);
  }
  return out;
}

std::string command_of(const bj::object& item) {
  const std::string_view type = view_at(item, "type");
  if (type == "file_change") return changes_in(item);
  if (type == "web_search") return std::string{view_at(item, "query")};
  std::string out{view_at(item, "server")};
  const std::string_view tool = view_at(item, "tool");
  if (!out.empty() && !tool.empty()) out += '.';
  return out += tool;
}

AgentEvent tool_call_of(const bj::object& item) {
  const bj::value whole = item;
  return tool_call(view_at(item, "type"), command_of(item),
                   {{"id", name_at(item, "id")}, {"input", short_value(&whole)}});
}

AgentEvent tool_result_of(const bj::object& item) {
  const bj::value* result = find(item, "result");
  const bj::object* object = result != nullptr ? result->if_object() : nullptr;
  std::string text = object != nullptr ? text_in(find(*object, "content")) : text_in(result);
  const bj::object* error = object_at(item, "error");
  if (text.empty() && error != nullptr) text = std::string{view_at(*error, "message")};
  const std::string_view status = view_at(item, "status");
  if (text.empty()) text = status;
  // Includes the name and command, because not every kind of call is announced.
  AgentEvent out = tool_result(text, {{"id", name_at(item, "id")},
                                      {"name", name_at(item, "type")},
                                      {"command", bj::string(short_text(command_of(item)))},
                                      {"status", name_at(item, "status")},
                                      {"content", bj::string(short_text(text))}});
  if (status == "failed" || error != nullptr) out.level = EventLevel::warn;
  return out;
}

Events command_events(const bj::object& item, ItemStage stage) {
  const bj::value id = name_at(item, "id");
  const std::string_view command = view_at(item, "command");
  if (stage == ItemStage::started) return {tool_call("shell", command, {{"id", id}})};
  const std::string_view output = view_at(item, "aggregated_output");
  AgentEvent out = tool_result(
      output, {{"id", id},
               {"command", bj::string(short_text(clipped(command, event_message_bytes_max)))},
               {"exitCode", short_value(find(item, "exit_code"))},
               {"content", bj::string(short_text(output))}});
  if (view_at(item, "status") == "failed") out.level = EventLevel::warn;
  return {std::move(out)};
}

Read item_events(const bj::object& item, ItemStage stage, AgentReading& reading) {
  const std::string_view type = view_at(item, "type");
  if (type == "command_execution") return command_events(item, stage);
  if (is_tool(type)) {
    if (stage == ItemStage::started) return Events{tool_call_of(item)};
    return Events{tool_result_of(item)};
  }
  if (stage == ItemStage::started) return Events{};
  if (type == "agent_message") {
    reading.outcome.result = text_at(item, "text", result_bytes_max);
    return Events{event(AgentEventKind::assistant, view_at(item, "text"))};
  }
  if (type == "reasoning") return Events{event(AgentEventKind::thinking, view_at(item, "text"))};
  // An ignored setting or a model without metadata: the turn continues.
  if (type == "error") {
    AgentEvent told = event(AgentEventKind::notice, view_at(item, "message"));
    told.level = EventLevel::warn;
    return Events{std::move(told)};
  }
  return Events{};
}

AgentUsage usage_in(const bj::object& usage) {
  return {.input_tokens = count_at(usage, "input_tokens"),
          .cached_input_tokens = count_at(usage, "cached_input_tokens"),
          .output_tokens = count_at(usage, "output_tokens"),
          .cache_write_input_tokens = count_at(usage, "cache_write_input_tokens")};
}

std::int64_t beyond(std::int64_t now, std::int64_t before) {
  // A smaller sum means that the program started counting again.
  return now >= before ? now - before : now;
}

AgentUsage beyond(const AgentUsage& now, const AgentUsage& before) {
  return {.input_tokens = beyond(now.input_tokens, before.input_tokens),
          .cached_input_tokens = beyond(now.cached_input_tokens, before.cached_input_tokens),
          .output_tokens = beyond(now.output_tokens, before.output_tokens),
          .cache_write_input_tokens =
              beyond(now.cache_write_input_tokens, before.cache_write_input_tokens)};
}

Events turn_completed(const bj::object& line, AgentReading& reading) {
  AgentOutcome& outcome = reading.outcome;
  outcome.error.reset();  // the failure before the retry
  if (const bj::object* usage = object_at(line, "usage")) {
    // The program counts the whole thread, including earlier runs.
    outcome.session_usage = usage_in(*usage);
    const bool goes_on = reading.before && outcome.session_id == reading.before->session_id;
    outcome.usage =
        goes_on ? beyond(*outcome.session_usage, reading.before->usage) : *outcome.session_usage;
  }
  return {event(AgentEventKind::result, outcome.result.value_or(""),
                {{"usage", encode(outcome.usage)}})};
}

Events thread_started(const bj::object& line, AgentReading& reading) {
  AgentOutcome& outcome = reading.outcome;
  outcome.session_id = session_at(line, "thread_id");
  outcome.model = reading.model;
  if (reading.before && outcome.session_id == reading.before->session_id) {
    outcome.session_usage = reading.before->usage;  // until a turn reports more
    if (!outcome.model) outcome.model = reading.before->model;
  }
  return {event(AgentEventKind::session, outcome.session_id.value_or(""),
                {{"sessionId", encode(outcome.session_id)}, {"model", encode(outcome.model)}})};
}

}  // namespace

Read read_codex(const bj::object& line, AgentReading& reading) {
  const std::string_view type = view_at(line, "type");
  if (type == "thread.started") return thread_started(line, reading);
  const bj::object* item = object_at(line, "item");
  if (type == "item.started" && item != nullptr)
    return item_events(*item, ItemStage::started, reading);
  if (type == "item.completed" && item != nullptr)
    return item_events(*item, ItemStage::completed, reading);
  if (type == "item.started" || type == "item.completed") return std::nullopt;
  if (type == "turn.completed") return turn_completed(line, reading);
  if (type == "error") {
    // It reconnects and continues; only the end of the turn shows whether it failed.
    return Events{warning(
        reading.signs,
        text_at(line, "message", event_text_bytes_max).value_or("the agent reports an error"))};
  }
  if (type == "turn.failed") {
    const bj::object* failure = object_at(line, "error");
    if (failure == nullptr) return std::nullopt;
    reading.outcome.error =
        text_at(*failure, "message", event_text_bytes_max).value_or("the agent reports an error");
    return Events{event(AgentEventKind::error, *reading.outcome.error)};
  }
  // New line types in later versions are not errors.
  return type.empty() ? Read{} : Read{Events{}};
}

}  // namespace berth::core::agent_line
