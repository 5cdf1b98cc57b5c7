#pragma once

#include "base/result.hpp"
#include "keeper/protocol/messages.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "keeper/sandbox/plan.hpp"
#include "keeper/sandbox/setup.hpp"

#include <vector>

namespace berth::keeper::sandbox {

// How strong a sandbox with these features is, and what would make it stronger.
Confined describe(const Plan& plan, Features features, const std::vector<Unenforced>& unenforced);
// The same for a sandbox without namespaces.
Confined describe_minimal(const Plan& plan, Features features,
                          const std::vector<Unenforced>& unenforced);
// `isolation_too_weak` if the plan requires more.
Result<> demand(const Plan& plan, const Confined& confined);

}  // namespace berth::keeper::sandbox
