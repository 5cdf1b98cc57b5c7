#include "cli/run/transcript_text.hpp"

#include "base/json/peek.hpp"
#include "cli/objects.hpp"
#include "cli/print/table.hpp"

#include <cmath>
#include <cstdio>

namespace berth::cli {
namespace {

using core::AgentEventKind;

constexpr std::size_t lines_max = 400;  // of a message, so that none floods the terminal

struct Margin {
  std::string_view first;
  std::string_view rest;
};

// Each line by itself, without terminal control characters.
std::string lines_of(std::string_view text, Margin margin, std::size_t most, Paint paint,
                     const TranscriptLook& look) {
  std::string out;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  std::size_t count = 0;
  std::size_t left_out = 0;
  for (bool is_more = true; is_more; ++count) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    is_more = end != std::string_view::npos;
    if (is_more) text.remove_prefix(end + 1);
    if (count >= most) {
      ++left_out;
      continue;
    }
    const std::string shown =
        std::string{count == 0 ? margin.first : margin.rest} + printable(line);
    out += (look.colour ? painted(shown, paint) : shown) + "\n";
  }
  if (left_out > 0) {
    const std::string note =
        std::string{margin.rest} + "... " + std::to_string(left_out) + " more lines";
    out += (look.colour ? painted(note, Paint::dim) : note) + "\n";
  }
  return out;
}

std::string call_text(const core::AgentEvent& event, const TranscriptLook& look) {
  return lines_of(event.message, {"* ", "    "}, lines_max, Paint::bold, look);
}

std::string result_text(const core::AgentEvent& event, const TranscriptLook& look) {
  std::string text = event.message;
  const std::int64_t code = peek<std::int64_t>(event.payload, "exitCode").value_or(0);
  if (code != 0) {
    text += (text.empty() || text.ends_with('\n') ? "exit code " : "\nexit code ") +
            std::to_string(code);
  }
  if (text.empty()) return {};
  const Paint paint = event.level == core::EventLevel::warn ? Paint::yellow : Paint::dim;
  return lines_of(text, {"  | ", "  | "}, look.result_lines_max, paint, look);
}

std::string event_text(const core::AgentEvent& event, const TranscriptLook& look) {
  const auto shown = [&](Margin margin, Paint paint) {
    return lines_of(event.message, margin, lines_max, paint, look);
  };
  switch (event.kind) {
    case AgentEventKind::assistant: return shown({"", ""}, Paint::none);
    case AgentEventKind::thinking: return shown({"  ~ ", "    "}, Paint::dim);
    case AgentEventKind::tool_call: return call_text(event, look);
    case AgentEventKind::tool_result: return result_text(event, look);
    case AgentEventKind::notice: return shown({"! ", "  "}, Paint::yellow);
    case AgentEventKind::error: return shown({"! ", "  "}, Paint::red);
    case AgentEventKind::raw: return shown({"", ""}, Paint::dim);
    case AgentEventKind::session:
    case AgentEventKind::result: break;  // told by the run itself, and by the last message
  }
  return {};
}

std::string usd(double amount) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), amount < 0.01 ? "%.4f" : "%.2f", amount);
  return std::string{"$"} + text.data();
}

}  // namespace

std::string TranscriptText::text_of_events(const std::vector<core::AgentEvent>& events) {
  std::string out;
  for (const core::AgentEvent& event : events) {
    const std::string text = event_text(event, look_);
    // A subagent's lines are indented further.
    if (!event.payload.contains("parentId")) {
      out += text;
      continue;
    }
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = rest.find('\n') + 1;
      out += "    " + std::string{rest.substr(0, end)};
      rest.remove_prefix(end);
    }
  }
  return out;
}

std::string TranscriptText::push(std::string_view bytes) {
  return text_of_events(output_.push(bytes));
}

std::string TranscriptText::finish() {
  return text_of_events(output_.finish());
}

std::string prompt_text(std::string_view prompt, const TranscriptLook& look) {
  return lines_of(prompt, {"> ", "> "}, lines_max, Paint::bold, look);
}

std::string numbers_line(const bj::value& run) {
  const auto result = peek<bj::object>(run, "resultJson");
  if (!result) return {};
  const bj::value whole = *result;
  std::string out = text_of(whole, "model");
  const auto add = [&](const std::string& part) { out += (out.empty() ? "" : ", ") + part; };
  if (const auto usage = peek<bj::object>(whole, "usage")) {
    const auto count = [&](std::string_view key) {
      return peek<std::int64_t>(*usage, key).value_or(0);
    };
    add(std::to_string(count("inputTokens")) + " tokens in");
    if (count("cachedInputTokens") > 0) {
      add(std::to_string(count("cachedInputTokens")) + " from the cache");
    }
    add(std::to_string(count("outputTokens")) + " out");
  }
  if (const auto cost = peek<double>(*result, "costUsd")) add(usd(*cost));
  return out;
}

}  // namespace berth::cli
