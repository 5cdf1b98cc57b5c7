#pragma once

#include "base/result.hpp"
#include "keeper/sandbox/plan.hpp"

namespace berth::keeper::sandbox {

// Empties the tray of a sandbox that has ended, except for the plan's kept folder. That one is kept
// if it is a folder and no component of its path is a link. Its parents are recreated with the
// owners and modes that they had. Links are removed and never followed.
Result<> keep_only_folder(int tray, const Plan& plan);

}  // namespace berth::keeper::sandbox
