#pragma once

#include "cli/context.hpp"
#include "cli/run/attachment.hpp"
#include "cli/run/transcript_text.hpp"

namespace berth::cli {

// Shows the output of an agent's run as a transcript. Made empty, it shows nothing: the run is not
// an agent's, or its program prints plain text.
class TranscriptView {
 public:
  TranscriptView() = default;
  TranscriptView(Context& context, core::AdapterType adapter);
  // Asks which agent the run is of.
  static Result<TranscriptView> of_run(Context& context, const bj::value& run);

  bool shows() const { return text_ != nullptr; }
  void render(AttachOptions& request) const;
  // What the agent was asked.
  Result<> show_prompt(Context& context, const std::string& run_id) const;
  // The rest of the output, and the numbers of a run that is over.
  void finish(Context& context, const bj::value& run) const;
  // Why a run failed, which its exit code alone does not say.
  void tell_why(Context& context, const bj::value& run) const;

 private:
  std::shared_ptr<TranscriptText> text_;
};

// Stays at a run to its end, and sets what the process tells the shell: the exit code of the
// command, and an error where it was not carried out.
Result<> follow_run(Context& context, Attachment& attachment, AttachOptions request,
                    const TranscriptView& view = {});
// Shows what a run has said up to now, and leaves.
Result<> show_log_so_far(Context& context, AttachOptions request, const TranscriptView& view = {});
// Looking on is no reason to end as the run does: only a signal that said to leave is told.
Result<> look_on(Context& context, AttachOptions request, const TranscriptView& view = {});

}  // namespace berth::cli
