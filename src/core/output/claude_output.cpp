// The output lines of Claude Code: `--output-format stream-json`.
#include "core/output/agent_line.hpp"

namespace berth::core::agent_line {
namespace {

// What a tool is asked to do, in one line: the part of its input that people look for.
std::string command_in(const bj::object& input) {
  for (const char* key : {"command", "file_path", "notebook_path", "path", "pattern", "url",
                          "query", "description", "skill"}) {
    if (const std::string_view text = view_at(input, key); !text.empty()) return std::string{text};
  }
  return {};
}

std::optional<AgentEvent> block_event(const bj::object& block) {
  const std::string_view type = view_at(block, "type");
  if (type == "text") return event(AgentEventKind::assistant, view_at(block, "text"));
  if (type == "thinking") return event(AgentEventKind::thinking, view_at(block, "thinking"));
  if (type == "tool_use") {
    const bj::object* input = object_at(block, "input");
    return tool_call(view_at(block, "name"), input != nullptr ? command_in(*input) : "",
                     {{"id", name_at(block, "id")}, {"input", short_value(find(block, "input"))}});
  }
  if (type != "tool_result") return std::nullopt;
  const bj::value* content = find(block, "content");
  AgentEvent result = tool_result(
      text_in(content), {{"id", name_at(block, "tool_use_id")}, {"content", short_value(content)}});
  if (is_true(block, "is_error")) result.level = EventLevel::warn;
  return result;
}

AgentUsage main_usage(const bj::object& usage) {
  return {.input_tokens = count_at(usage, "input_tokens"),
          .cached_input_tokens = count_at(usage, "cache_read_input_tokens"),
          .output_tokens = count_at(usage, "output_tokens"),
          .cache_write_input_tokens = count_at(usage, "cache_creation_input_tokens")};
}

// Per model, including subagents; the `usage` field covers only the main conversation.
std::optional<AgentUsage> whole_usage(const bj::object& line) {
  const bj::object* by_model = object_at(line, "modelUsage");
  if (by_model != nullptr && !by_model->empty()) {
    AgentUsage sum;
    for (const auto& [model, value] : *by_model) {
      const bj::object* part = value.if_object();
      if (part == nullptr) continue;
      sum.input_tokens += count_at(*part, "inputTokens");
      sum.cached_input_tokens += count_at(*part, "cacheReadInputTokens");
      sum.output_tokens += count_at(*part, "outputTokens");
      sum.cache_write_input_tokens += count_at(*part, "cacheCreationInputTokens");
    }
    return sum;
  }
  const bj::object* usage = object_at(line, "usage");
  return usage != nullptr ? std::optional{main_usage(*usage)} : std::nullopt;
}

std::optional<double> cost_in(const bj::object& line) {
  const bj::value* cost = find(line, "total_cost_usd");
  if (cost == nullptr || !cost->is_number()) return std::nullopt;
  const auto usd = cost->to_number<double>();
  return usd >= 0 && usd < 1e12 ? std::optional{usd} : std::nullopt;
}

// A model error is in `result`, a program error in `errors`.
std::optional<std::string> error_in(const bj::object& line) {
  if (auto text = text_at(line, "result", event_text_bytes_max)) return text;
  const bj::value* errors = find(line, "errors");
  if (errors != nullptr && errors->is_array()) {
    for (const bj::value& error : errors->get_array()) {
      if (error.is_string() && !error.get_string().empty()) return short_text(error.get_string());
    }
  }
  return text_at(line, "subtype", agent_name_bytes_max);
}

Events result_events(const bj::object& line, AgentReading& reading) {
  AgentOutcome& outcome = reading.outcome;
  outcome.result = text_at(line, "result", result_bytes_max);
  outcome.usage = whole_usage(line);
  outcome.cost_usd = cost_in(line);
  bj::object payload{{"subtype", name_at(line, "subtype")},
                     {"turns", count_at(line, "num_turns")},
                     {"usage", encode(outcome.usage)},
                     {"costUsd", encode(outcome.cost_usd)}};
  // An earlier failure no longer matters, because the stream continued.
  outcome.error.reset();
  const bool has_failed =
      is_true(line, "is_error") || view_at(line, "subtype").starts_with("error_");
  if (!has_failed) {
    return {event(AgentEventKind::result, outcome.result.value_or(""), std::move(payload))};
  }
  outcome.error = error_in(line).value_or("the agent reports an error");
  if (const std::int64_t status = count_at(line, "api_error_status"); status > 0) {
    reading.signs.status = status;
  }
  if (view_at(line, "subtype").starts_with("error_")) {
    reading.signs.error_word = std::string{name_at(line, "subtype")};
  }
  return {event(AgentEventKind::error, *outcome.error, std::move(payload))};
}

Events retry_events(const bj::object& line, AgentSigns& signs) {
  const std::int64_t status = count_at(line, "error_status");
  const auto word = text_at(line, "error", agent_name_bytes_max);
  if (status > 0) signs.status = status;
  if (word) signs.error_word = *word;
  std::string message = "The model did not answer";
  if (status > 0) message = "The model answered with status " + std::to_string(status);
  if (word) message += " (" + *word + ")";
  message += "; the program tries again, " + std::to_string(count_at(line, "attempt")) + " of " +
             std::to_string(count_at(line, "max_retries"));
  return {warning(signs, std::move(message),
                  {{"attempt", count_at(line, "attempt")},
                   {"maxRetries", count_at(line, "max_retries")},
                   {"status", status},
                   {"delayMs", count_at(line, "retry_delay_ms")}})};
}

Read system_events(const bj::object& line, AgentReading& reading) {
  const std::string_view subtype = view_at(line, "subtype");
  if (subtype == "init") {
    AgentOutcome& outcome = reading.outcome;
    outcome.session_id = session_at(line, "session_id");
    outcome.model = text_at(line, "model", agent_name_bytes_max);
    return Events{
        event(AgentEventKind::session, outcome.session_id.value_or(""),
              {{"sessionId", encode(outcome.session_id)}, {"model", encode(outcome.model)}})};
  }
  if (subtype == "api_retry") return retry_events(line, reading.signs);
  if (subtype == "permission_denied") {
    const auto message = text_at(line, "message", event_text_bytes_max);
    AgentEvent denied = event(AgentEventKind::notice,
                              "Permission denied for " + std::string{name_at(line, "tool_name")} +
                                  (message ? ": " + *message : ""),
                              {{"id", name_at(line, "tool_use_id")}});
    denied.level = EventLevel::warn;
    return Events{std::move(denied)};
  }
  return Events{};
}

Read message_events(const bj::object& line, AgentReading& reading) {
  const bj::object* message = object_at(line, "message");
  const bj::value* content = message != nullptr ? find(*message, "content") : nullptr;
  if (content == nullptr || !content->is_array()) return std::nullopt;
  const bool is_assistant = view_at(line, "type") == "assistant";
  const bj::string parent = name_at(line, "parent_tool_use_id");
  if (const auto word = text_at(line, "error", agent_name_bytes_max)) {
    reading.signs.error_word = *word;
  }
  Events out;
  for (const bj::value& block : content->get_array()) {
    if (!block.is_object()) continue;
    // The text of a user turn is our own prompt.
    auto found = block_event(block.get_object());
    if (!found || (!is_assistant && found->kind != AgentEventKind::tool_result)) continue;
    if (!parent.empty()) found->payload["parentId"] = parent;
    out.push_back(*std::move(found));
  }
  return out;
}

}  // namespace

Read read_claude(const bj::object& line, AgentReading& reading) {
  const std::string_view type = view_at(line, "type");
  if (type == "system") return system_events(line, reading);
  if (type == "result") return result_events(line, reading);
  if (type == "assistant" || type == "user") return message_events(line, reading);
  // New line types in later versions are not errors.
  return type.empty() ? Read{} : Read{Events{}};
}

}  // namespace berth::core::agent_line
