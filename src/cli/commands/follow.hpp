#pragma once

#include "cli/run/attachment.hpp"
#include "cli/session.hpp"

namespace berth::cli {

// Stays at a run to its end, and sets what the process tells the shell: the exit code of the
// command, and an error where it was not carried out.
Result<> follow_run(Session& session, Attachment& attachment, AttachWish wish);

}  // namespace berth::cli
