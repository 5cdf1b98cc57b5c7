#include "core/output/transcript.hpp"

#include "core/output/agent_line.hpp"

namespace berth::core {
namespace {

std::optional<TranscriptKind> entry_kind(const RunEventRecord& event) {
  if (event.event_type == "adapter.invoke") return TranscriptKind::prompt;
  if (event.event_type == "agent.assistant") return TranscriptKind::message;
  if (event.event_type == "agent.thinking") return TranscriptKind::thinking;
  if (event.event_type == "agent.tool_call") return TranscriptKind::tool_call;
  if (event.event_type == "agent.tool_result") return TranscriptKind::tool_result;
  if (event.event_type == "agent.notice") return TranscriptKind::notice;
  if (event.event_type == "agent.error") return TranscriptKind::error;
  if (event.event_type == "agent.raw") return TranscriptKind::output;
  if (event.event_type.starts_with("agent.")) return std::nullopt;
  // Events of the run itself appear only if they are warnings.
  if (event.level == EventLevel::warn) return TranscriptKind::notice;
  return std::nullopt;
}

std::optional<std::string> payload_text(const bj::object& payload, std::string_view key) {
  const std::string_view text = agent_line::view_at(payload, key);
  return text.empty() ? std::nullopt : std::optional{std::string{text}};
}

void fill(TranscriptEntry& entry, const bj::object& payload) {
  entry.tool_id = payload_text(payload, "id");
  entry.parent_id = payload_text(payload, "parentId");
  if (entry.kind == TranscriptKind::tool_call) {
    // Events of older servers have the name alone.
    entry.tool_name = payload_text(payload, "name").value_or(entry.text);
    entry.command = payload_text(payload, "command");
    if (const bj::value* input = agent_line::find(payload, "input")) entry.input = *input;
    entry.text.clear();
  }
  if (entry.kind == TranscriptKind::tool_result) {
    entry.tool_name = payload_text(payload, "name");
    entry.command = payload_text(payload, "command");
    const bj::value* content = agent_line::find(payload, "content");
    if (content != nullptr && !content->is_null()) entry.text = agent_line::text_in(content);
    const bj::value* code = agent_line::find(payload, "exitCode");
    if (code != nullptr && code->is_int64()) entry.exit_code = code->get_int64();
  }
}

}  // namespace

std::optional<TranscriptEntry> transcript_entry(const RunEventRecord& event) {
  const auto kind = entry_kind(event);
  if (!kind) return std::nullopt;
  TranscriptEntry entry{.seq = event.seq,
                        .at = event.created_at,
                        .kind = *kind,
                        .level = event.level,
                        .text = event.message};
  if (*kind == TranscriptKind::prompt) {
    const auto prompt = event.payload ? payload_text(*event.payload, "prompt") : std::nullopt;
    if (!prompt) return std::nullopt;
    entry.text = *prompt;
    return entry;
  }
  if (event.payload) fill(entry, *event.payload);
  return entry;
}

Transcript transcript_of(const Run& run) {
  Transcript out{.run_id = run.id,
                 .agent_id = run.agent_id,
                 .status = run.status,
                 .session_id = run.session_id_after,
                 .resumed_session_id = run.session_id_before,
                 .error = run.error,
                 .error_code = run.error_code};
  if (!run.result_json) return out;
  out.model = payload_text(*run.result_json, "model");
  out.result = payload_text(*run.result_json, "result");
  if (const bj::object* usage = agent_line::object_at(*run.result_json, "usage")) {
    out.usage = AgentUsage{
        .input_tokens = agent_line::count_at(*usage, "inputTokens"),
        .cached_input_tokens = agent_line::count_at(*usage, "cachedInputTokens"),
        .output_tokens = agent_line::count_at(*usage, "outputTokens"),
        .cache_write_input_tokens = agent_line::count_at(*usage, "cacheWriteInputTokens")};
  }
  const bj::value* cost = agent_line::find(*run.result_json, "costUsd");
  if (cost != nullptr && cost->is_number()) out.cost_usd = cost->to_number<double>();
  return out;
}

}  // namespace berth::core
