#pragma once

#include "core/output/agent_output.hpp"

// Helpers for the readers of each program's lines: parts of a foreign document, bounded and
// storable.
namespace berth::core::agent_line {

using Events = std::vector<AgentEvent>;

// The result of reading a line: absent when the line is not the program's, an empty list when it
// holds nothing of interest to people.
using Read = std::optional<Events>;

const bj::value* find(const bj::object& object, std::string_view key);
const bj::object* object_at(const bj::object& object, std::string_view key);
std::string_view view_at(const bj::object& object, std::string_view key);
std::optional<std::string> text_at(const bj::object& object, std::string_view key,
                                   std::size_t bytes_max);
// Text that is not a session id counts as absent, because it goes into the arguments of the
// program's next run.
std::optional<std::string> session_at(const bj::object& object, std::string_view key);
bj::string name_at(const bj::object& object, std::string_view key);
// Token counts from programs that we do not control: an implausible number counts as zero.
std::int64_t count_at(const bj::object& object, std::string_view key);
bool is_true(const bj::object& object, std::string_view key);

std::string short_text(std::string_view text);
// Part of a foreign document for an event payload: unchanged, or as truncated text.
bj::value short_value(const bj::value* value);
// The text in a tool's result: a string, or the texts in a list of blocks.
std::string text_in(const bj::value* content);

AgentEvent event(AgentEventKind kind, std::string_view message, bj::object payload = {});
AgentEvent warning(AgentSigns& signs, std::string message, bj::object payload = {});
// "Bash: ls -l", with the command in the payload.
AgentEvent tool_call(std::string_view name, std::string_view command, bj::object payload);
AgentEvent tool_result(std::string_view text, bj::object payload);

Read read_claude(const bj::object& line, AgentReading& reading);
Read read_codex(const bj::object& line, AgentReading& reading);

}  // namespace berth::core::agent_line
