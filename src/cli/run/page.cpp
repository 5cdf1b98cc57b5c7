#include "cli/run/page.hpp"

#include "cli/objects.hpp"
#include "cli/print/table.hpp"
#include "cli/run/span.hpp"
#include "cli/run/transcript_text.hpp"
#include "cli/run/verdict.hpp"
#include "core/lifecycle.hpp"

#include <algorithm>

namespace berth::cli {
namespace {

constexpr std::size_t label_width = 13;
constexpr std::size_t time_width = 12;
constexpr std::size_t bar_width_min = 10;
constexpr std::size_t bar_width_max = 60;

const bj::value* field(const bj::value& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.get_object().find(key);
  const bool is_there = found != object.get_object().end() && !found->value().is_null();
  return is_there ? &found->value() : nullptr;
}

std::optional<Time> time_at(const bj::value& object, std::string_view key) {
  const Result<Time> at = parse_iso8601(text_of(object, key));
  return at ? std::optional{*at} : std::nullopt;
}

std::int64_t number_at(const bj::value& object, std::string_view key) {
  const bj::value* found = field(object, key);
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

// Lines of "label  value"; empty values are omitted.
class Page {
 public:
  explicit Page(const PageLook& look) : look_(look) {}

  void title(const std::string& text, Paint paint) { out_ += paint_it(text, paint) + "\n"; }
  void line(const std::string& label, const std::string& value, Paint paint = Paint::none) {
    if (value.empty()) return;
    const std::size_t width = display_width(label);
    out_ += "  " + paint_it(label, Paint::dim) +
            std::string(width < label_width ? label_width - width : 1, ' ') +
            paint_it(printable(value), paint) + "\n";
  }
  void block(const std::string& text) {
    if (!text.empty()) out_ += "\n" + text;
  }
  std::string text() && { return std::move(out_); }

 private:
  std::string paint_it(const std::string& text, Paint paint) const {
    return look_.colour ? painted(text, paint) : text;
  }

  const PageLook& look_;
  std::string out_;
};

std::string command_line(const bj::value& run) {
  const bj::value* command = field(run, "command");
  const bj::value* argv = command != nullptr ? field(*command, "argv") : nullptr;
  return argv != nullptr && argv->is_array() ? command_text(argv->get_array()) : "";
}

std::string ending(const bj::value& run) {
  if (const std::string signal = text_of(run, "signal"); !signal.empty()) return signal;
  const bj::value* code = field(run, "exitCode");
  return code != nullptr && code->is_int64() ? "exit " + std::to_string(code->get_int64()) : "";
}

std::string environment_line(const bj::value& run) {
  const bj::value* choice = field(run, "environmentChoice");
  const std::string why = choice != nullptr ? text_of(*choice, "explanation") : "";
  const bj::value* environment = field(run, "environment");
  if (environment == nullptr) return why.empty() ? text_of(run, "environmentId") : why;
  const std::string name =
      text_of(*environment, "name") + " (" + text_of(*environment, "driver") + ")";
  return why.empty() ? name : name + ": " + why;
}

std::string lease_line(const bj::value& run) {
  const bj::value* lease = field(run, "environmentLease");
  if (lease == nullptr) return text_of(run, "leaseId");
  std::string line = text_of(*lease, "id") + " " + text_of(*lease, "status") + ", " +
                     text_of(*lease, "leasePolicy");
  const std::string why = text_of(*lease, "failureReason");
  return why.empty() ? line : line + ": " + why;
}

std::string server_line(const bj::value& run) {
  const bj::value* server = field(run, "server");
  if (server == nullptr) return {};
  const std::string url = text_of(*server, "url");
  return text_of(*server, "name") + (url.empty() ? "" : " (" + url + ")");
}

// An agent's prompt, its result, and its cost.
void agent_lines(Page& page, const bj::value& run) {
  const bj::value* command = field(run, "command");
  if (command != nullptr) page.line("prompt", text_of(*command, "promptExcerpt"));
  const std::string context = text_of(run, "sessionIdAfter");
  const bool goes_on = !context.empty() && context == text_of(run, "sessionIdBefore");
  page.line("session", context.empty() ? "" : context + (goes_on ? " (went on)" : " (new)"));
  page.line("used", numbers_line(run));
  const bj::value* result = field(run, "resultJson");
  if (result == nullptr) return;
  constexpr std::size_t answer_columns = 400;
  const std::string answer = text_of(*result, "result");
  if (text_of(*result, "error").empty()) page.line("answer", clipped(answer, answer_columns));
}

std::string moment_line(const bj::value& run, const char* key, const PageLook& look) {
  const auto at = time_at(run, key);
  return at ? relative_time(*at, look.now) + " (" + text_of(run, key) + ")" : "";
}

// Pads the text so that columns are aligned.
std::string right(const std::string& text, std::size_t width) {
  std::string out(width > text.size() ? width - text.size() : 0, ' ');
  return out += text;
}

std::string left(std::string text, std::size_t width) {
  const std::size_t taken = display_width(text);
  return text.append(width > taken ? width - taken : 0, ' ');
}

std::string bars(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += "▇";
  return out;
}

}  // namespace

std::string phases_picture(const bj::array& phases, const PageLook& look) {
  struct Bar {
    std::string name;
    std::int64_t from;
    std::int64_t to;
  };
  std::vector<Bar> list;
  for (const bj::value& phase : phases) {
    const auto from = time_at(phase, "startedAt");
    if (!from) continue;
    const Time to = time_at(phase, "finishedAt").value_or(look.now);
    list.push_back({text_of(phase, "phase"), from->ms, std::max(from->ms, to.ms)});
  }
  if (list.empty()) return {};
  const std::int64_t begin = list.front().from;
  std::int64_t whole = 1;
  for (const Bar& bar : list) whole = std::max(whole, bar.to - begin);

  const std::size_t head = 2 + label_width + time_width + 2;
  const std::size_t room = look.columns > head ? look.columns - head : 0;
  const auto width = static_cast<std::int64_t>(std::clamp(room, bar_width_min, bar_width_max));
  std::string out;
  for (const Bar& bar : list) {
    const auto at = std::clamp<std::int64_t>((bar.from - begin) * width / whole, 0, width - 1);
    const auto end = std::clamp<std::int64_t>((bar.to - begin) * width / whole, at + 1, width);
    const std::string drawn = bars(static_cast<std::size_t>(end - at));
    out += "  " + left(clipped(printable(bar.name), label_width - 1), label_width);
    out += right(span_text(bar.to - bar.from), time_width) + "  ";
    out.append(static_cast<std::size_t>(at), ' ');
    out += (look.colour ? painted(drawn, Paint::green) : drawn) + "\n";
  }
  return out;
}

std::string run_page(const bj::value& run, const PageLook& look) {
  Page page{look};
  const std::string state = text_of(run, "status");
  const std::string how = ending(run);
  page.title(
      printable("run " + text_of(run, "id") + "  " + state + (how.empty() ? "" : ", " + how)),
      paint_of_state(state));
  page.line("command", command_line(run));
  const bj::value* command = field(run, "command");
  if (command != nullptr) page.line("folder", text_of(*command, "cwd"));
  page.line("environment", environment_line(run));
  page.line("agent", text_of(run, "agentId"));
  agent_lines(page, run);
  page.line("waits", waiting_line(run), Paint::yellow);
  page.line("asked for", moment_line(run, "createdAt", look));
  page.line("finished", moment_line(run, "finishedAt", look));
  page.line("lease", lease_line(run));
  page.line("server", server_line(run));
  page.line("output", std::to_string(number_at(run, "logBytes")) + " bytes");
  page.line("retry of", text_of(run, "retryOfRunId"));
  const auto known = parse_name<core::RunState>(state);
  if (known && core::is_final(*known)) {
    if (const auto error = error_of_run(run)) {
      page.line("error", error->message, Paint::red);
      page.line("code", text_of(run, "errorCode"));
      page.line("fix", error->remedy, Paint::green);
    }
  }
  if (const bj::value* phases = field(run, "phases"); phases != nullptr && phases->is_array()) {
    page.block(phases_picture(phases->get_array(), look));
  }
  return std::move(page).text();
}

std::string waiting_line(const bj::value& run) {
  const std::string state = text_of(run, "status");
  if (state == name_of(core::RunState::starting)) return "starting in " + environment_line(run);
  if (state != name_of(core::RunState::queued)) return {};
  const bj::value* queue = field(run, "queue");
  if (queue == nullptr) return "queued";
  const std::string why = text_of(*queue, "explanation");
  return "queued at position " + std::to_string(number_at(*queue, "position")) +
         (why.empty() ? "" : ": " + why);
}

std::string probe_page(const bj::value& report, const PageLook& look) {
  const auto flag = [](const bj::value& object) {
    const bj::value* ok = field(object, "ok");
    return ok != nullptr && ok->is_bool() && ok->get_bool();
  };
  const auto paint = [&](const std::string& text, Paint colour) {
    return look.colour ? painted(text, colour) : text;
  };
  std::string out;
  const bj::value* steps = field(report, "steps");
  if (steps != nullptr && steps->is_array()) {
    for (const bj::value& step : steps->get_array()) {
      out += paint(flag(step) ? "ok  " : "FAIL", flag(step) ? Paint::green : Paint::red) + "  ";
      out += left(clipped(printable(text_of(step, "name")), label_width), label_width + 1);
      out += right(span_text(number_at(step, "durationMs")), time_width) + "  ";
      out += printable(text_of(step, "message")) + "\n";
      if (flag(step)) continue;
      if (const std::string code = text_of(step, "code"); !code.empty()) {
        out += "      " + paint("code:", Paint::dim) + " " + printable(code) + "\n";
      }
      if (const std::string remedy = text_of(step, "remedy"); !remedy.empty()) {
        out += "      " + paint("fix:", Paint::green) + " " + printable(remedy) + "\n";
      }
    }
  }
  return out +
         paint(printable(text_of(report, "summary")), flag(report) ? Paint::green : Paint::red) +
         "\n";
}

}  // namespace berth::cli
