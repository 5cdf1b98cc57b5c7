#pragma once

#include "cli/context.hpp"
#include "cli/run/attachment.hpp"
#include "cli/run/transcript_text.hpp"

namespace berth::cli {

// Shows the output of an agent's run as a transcript. An empty one shows nothing: the run is not an
// agent's, or its program prints plain text.
class TranscriptView {
 public:
  TranscriptView() = default;
  TranscriptView(Context& context, core::AdapterType adapter);
  // Looks up the agent of the run.
  static Result<TranscriptView> of_run(Context& context, const bj::value& run);

  bool shows() const { return text_ != nullptr; }
  void render(AttachOptions& request) const;
  // Shows the agent's prompt.
  Result<> show_prompt(Context& context, const std::string& run_id) const;
  // The rest of the output, and the figures of a finished run.
  void finish(Context& context, const bj::value& run) const;
  // Why a run failed, which its exit code alone does not say.
  void tell_why(Context& context, const bj::value& run) const;

 private:
  std::shared_ptr<TranscriptText> text_;
};

// Follows a run to its end, and sets the exit code: the command's own, or an error if it was not
// carried out.
Result<> follow_run(Context& context, Attachment& attachment, AttachOptions request,
                    const TranscriptView& view = {});
// Shows a run's output up to now, and returns.
Result<> show_log_so_far(Context& context, AttachOptions request, const TranscriptView& view = {});
// Only watches the run, so its result does not set the exit code; only a signal to leave does.
Result<> look_on(Context& context, AttachOptions request, const TranscriptView& view = {});

}  // namespace berth::cli
