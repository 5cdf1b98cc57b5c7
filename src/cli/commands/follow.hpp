#pragma once

#include "cli/run/attachment.hpp"
#include "cli/session.hpp"

namespace berth::cli {

// Stays at a run to its end, and sets what the process tells the shell: the exit code of the
// command, and an error where it was not carried out.
Result<> follow_run(Session& session, Attachment& attachment, AttachWish wish);
// Shows what a run has said up to now, and leaves.
Result<> show_log_so_far(Session& session, AttachWish wish);
// Looking on is no reason to end as the run does: only a signal that said to leave is told.
Result<> look_on(Session& session, AttachWish wish);

}  // namespace berth::cli
