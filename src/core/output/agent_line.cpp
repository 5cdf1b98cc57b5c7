#include "core/output/agent_line.hpp"

namespace berth::core::agent_line {

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

std::optional<std::string> session_at(const bj::object& object, std::string_view key) {
  const std::string_view text = view_at(object, key);
  return is_session_id(text) ? std::optional{std::string{text}} : std::nullopt;
}

bj::string name_at(const bj::object& object, std::string_view key) {
  return bj::string(text_at(object, key, agent_name_bytes_max).value_or(""));
}

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

bj::value short_value(const bj::value* value) {
  if (value == nullptr) return nullptr;
  // A command's output can be megabytes, so it is not encoded just to measure it.
  if (value->is_string() && value->get_string().size() > event_text_bytes_max) {
    return bj::string(short_text(value->get_string()));
  }
  const std::string text = encode_text(*value);
  if (text.size() <= event_text_bytes_max) return *value;
  return bj::string(short_text(text));
}

std::string text_in(const bj::value* content) {
  if (content == nullptr || content->is_null()) return {};
  if (content->is_string()) return short_text(content->get_string());
  if (!content->is_array()) return short_text(encode_text(*content));
  std::string out;
  for (const bj::value& block : content->get_array()) {
    if (!block.is_object() || out.size() > event_text_bytes_max) continue;
    const std::string_view text = view_at(block.get_object(), "text");
    if (text.empty()) continue;
    if (!out.empty()) out += '\n';
    out += clipped(text, event_text_bytes_max);
  }
  return short_text(out);
}

AgentEvent event(AgentEventKind kind, std::string_view message, bj::object payload) {
  const bool is_error = kind == AgentEventKind::error;
  return {.kind = kind,
          .level = is_error ? EventLevel::error : EventLevel::info,
          .message = short_text(message),
          .payload = std::move(payload)};
}

AgentEvent warning(AgentSigns& signs, std::string message, bj::object payload) {
  AgentEvent out = event(AgentEventKind::notice, message, std::move(payload));
  out.level = EventLevel::warn;
  signs.warning = out.message;
  return out;
}

AgentEvent tool_call(std::string_view name, std::string_view command, bj::object payload) {
  payload["name"] = storable(clipped(name, agent_name_bytes_max));
  std::string message{name};
  if (!command.empty()) {
    payload["command"] = short_text(command);
    message += ": ";
    message += command;
  }
  return event(AgentEventKind::tool_call, clipped(message, event_message_bytes_max),
               std::move(payload));
}

AgentEvent tool_result(std::string_view text, bj::object payload) {
  return event(AgentEventKind::tool_result, clipped(text, event_message_bytes_max),
               std::move(payload));
}

}  // namespace berth::core::agent_line
