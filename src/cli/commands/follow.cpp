#include "cli/commands/follow.hpp"

#include "cli/run/verdict.hpp"

#include <csignal>
#include <ostream>

namespace berth::cli {

Result<> follow_run(Session& session, Attachment& attachment, AttachWish wish) {
  session.end_with(exit_not_run);
  if (session.flags().quiet) wish.remarks = Remarks::silent;
  const std::string id = wish.run_id;
  const bool ours = wish.on_interrupt == OnInterrupt::cancel_run;
  BERTH_TRY(AttachEnd end, attachment.follow(std::move(wish)));
  if (const auto* left = std::get_if<Left>(&end)) {
    session.end_with(exit_signal_base + left->signal);
    return {};
  }
  if (std::holds_alternative<AllShown>(end)) {
    session.end_with(0);
    return {};
  }
  if (std::holds_alternative<NobodyReads>(end)) {
    // Whoever started it wanted its output; without a reader there is nobody to work for.
    session.end_with(exit_signal_base + SIGPIPE);
    if (!ours) return {};
    BERTH_TRY(const bj::value cancelled,
              session.send({.method = "POST", .path = "/api/heartbeat-runs/" + id + "/cancel"}));
    return {};
  }
  const bj::value& run = std::get<RunEnded>(end).run;
  if (session.flags().json) session.console().out << pretty(run);
  session.end_with(exit_code_of_run(run));
  if (auto error = error_of_run(run)) return std::unexpected(*std::move(error));
  return {};
}

}  // namespace berth::cli
