#include "cli/commands/follow.hpp"

#include "base/json/peek.hpp"
#include "cli/run/verdict.hpp"

#include <csignal>
#include <ostream>

namespace berth::cli {
namespace {

// More than the row can lag behind, so that a run with much output is not chased forever.
constexpr std::size_t log_page_bytes = std::size_t{4} << 20;
constexpr int log_pages_max = 16;

// With --quiet, missing output is reported only if it sets the exit code.
void tell_losses(Context& context, const bj::value& run) {
  const auto remark = remark_of_run(run);
  if (!remark || (context.flags().quiet && exit_code_of_run(run) != exit_not_run)) return;
  context.console().err << "berth: " << printable(*remark) << "\n";
}

// Where the log ends now. A running run's row is updated only occasionally, so the output after its
// last known offset is counted.
Result<std::int64_t> log_end(Context& context, const std::string& path, const bj::value& run) {
  std::int64_t end = peek<std::int64_t>(run, "logBytes").value_or(0);
  BERTH_TRY(const Client* const server, context.client());
  const std::string behind =
      path + "/log?format=raw&limitBytes=" + std::to_string(log_page_bytes) + "&offset=";
  for (int pages = 0; pages < log_pages_max; ++pages) {
    BERTH_TRY(const Bytes page, server->transfer({.path = behind + std::to_string(end)}));
    end += static_cast<std::int64_t>(page.bytes.size());
    if (page.bytes.size() < log_page_bytes) break;
  }
  return end;
}

Result<AttachEnd> attach(Context& context, AttachOptions request) {
  BERTH_TRY(const Client* const server, context.client());
  Attachment attachment{*server, context.console()};
  BERTH_TRY(AttachEnd end, attachment.follow(std::move(request)));
  if (const auto* left = std::get_if<Left>(&end)) context.end_with(exit_signal_base + left->signal);
  return end;
}

TranscriptLook transcript_look(Context& context) {
  return {.colour = context.printer().colour() && context.console().out_is_terminal};
}

}  // namespace

TranscriptView::TranscriptView(Context& context, core::AdapterType adapter) {
  if (adapter == core::AdapterType::process) return;
  text_ = std::make_shared<TranscriptText>(adapter, transcript_look(context));
}

Result<TranscriptView> TranscriptView::of_run(Context& context, const bj::value& run) {
  const std::string agent = text_of(run, "agentId");
  if (agent.empty()) return TranscriptView{};
  const Result<bj::value> found = context.get("/api/agents/" + agent);
  if (!found && found.error().code == Errc::agent_not_found) return TranscriptView{};
  if (!found) return std::unexpected(found.error());
  const auto adapter = parse_name<core::AdapterType>(text_of(*found, "adapterType"));
  return adapter ? TranscriptView{context, *adapter} : TranscriptView{};
}

void TranscriptView::render(AttachOptions& request) const {
  if (!text_) return;
  request.render = [text = text_](std::string_view bytes) { return text->push(bytes); };
}

Result<> TranscriptView::show_prompt(Context& context, const std::string& run_id) const {
  if (!text_) return {};
  BERTH_TRY(const bj::value page,
            context.get("/api/heartbeat-runs/" + run_id + "/transcript?limit=20"));
  for (const bj::value& entry : peek<bj::array>(page, "entries").value_or(bj::array{})) {
    if (text_of(entry, "kind") != "prompt") continue;
    context.console().out << prompt_text(text_of(entry, "text"), transcript_look(context))
                          << std::flush;
    break;
  }
  return {};
}

void TranscriptView::finish(Context& context, const bj::value& run) const {
  if (!text_) return;
  std::ostream& out = context.console().out;
  out << text_->finish();
  const std::string numbers = numbers_line(run);
  if (!numbers.empty() && !context.flags().quiet) {
    const std::string line = "-- " + printable(numbers);
    out << (transcript_look(context).colour ? painted(line, Paint::dim) : line) << "\n";
  }
  out << std::flush;
}

void TranscriptView::tell_why(Context& context, const bj::value& run) const {
  if (!text_) return;
  const std::string error = text_of(run, "error");
  if (!error.empty()) context.console().err << "berth: " << printable(error) << "\n";
}

Result<> look_on(Context& context, AttachOptions request, const TranscriptView& view) {
  view.render(request);
  BERTH_TRY(const AttachEnd end, attach(context, std::move(request)));
  const auto* ended = std::get_if<RunEnded>(&end);
  if (ended == nullptr) return {};
  view.finish(context, ended->run);
  view.tell_why(context, ended->run);
  tell_losses(context, ended->run);
  return {};
}

Result<> show_log_so_far(Context& context, AttachOptions request, const TranscriptView& view) {
  view.render(request);
  const std::string path = "/api/heartbeat-runs/" + request.run_id;
  BERTH_TRY(const bj::value run, context.get(path));
  BERTH_TRY(request.until, log_end(context, path, run));
  if (*request.until > 0) {
    BERTH_TRY(const AttachEnd end, attach(context, std::move(request)));
    if (!std::holds_alternative<AllShown>(end)) return {};
  }
  view.finish(context, run);
  view.tell_why(context, run);
  tell_losses(context, run);
  return {};
}

Result<> follow_run(Context& context, Attachment& attachment, AttachOptions request,
                    const TranscriptView& view) {
  view.render(request);
  context.end_with(exit_not_run);
  if (context.flags().quiet) request.remarks = Remarks::silent;
  const std::string id = request.run_id;
  const bool ours = request.on_interrupt == OnInterrupt::cancel_run;
  BERTH_TRY(AttachEnd end, attachment.follow(std::move(request)));
  if (const auto* left = std::get_if<Left>(&end)) {
    context.end_with(exit_signal_base + left->signal);
    return {};
  }
  if (std::holds_alternative<AllShown>(end)) {
    context.end_with(0);
    return {};
  }
  if (std::holds_alternative<NobodyReads>(end)) {
    // The caller started it for its output; without a reader the work is pointless.
    context.end_with(exit_signal_base + SIGPIPE);
    if (!ours) return {};
    BERTH_TRY(const bj::value cancelled,
              context.send({.method = "POST", .path = "/api/heartbeat-runs/" + id + "/cancel"}));
    return {};
  }
  const bj::value& run = std::get<RunEnded>(end).run;
  view.finish(context, run);
  if (context.flags().json) context.console().out << pretty(run);
  context.end_with(exit_code_of_run(run));
  tell_losses(context, run);
  if (auto error = error_of_run(run)) return std::unexpected(*std::move(error));
  view.tell_why(context, run);
  return {};
}

}  // namespace berth::cli
