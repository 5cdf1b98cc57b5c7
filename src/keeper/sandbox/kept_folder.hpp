#pragma once

#include "base/result.hpp"
#include "keeper/sandbox/plan.hpp"

namespace berth::keeper::sandbox {

// Empties the tray of a sandbox that has ended, but for the plan's kept folder. That one is kept
// where it is a folder that no link leads to. The folders on the way to it are made anew, with the
// owners and modes that they had. Links are removed and never followed.
Result<> keep_only_folder(int tray, const Plan& plan);

}  // namespace berth::keeper::sandbox
