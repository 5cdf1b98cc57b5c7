#pragma once

#include "keeper/sandbox/plan.hpp"
#include "keeper/sandbox/setup.hpp"

#include <sys/types.h>

#include <cstdint>
#include <vector>

// The identity of a sandbox's processes, and the rights that they can never gain. Applies to the
// calling process and its children; each function returns 0 or errno.
namespace berth::keeper::sandbox {

// Limits the resource to `most`, or to a lower hard limit that the process may not change.
int bound(int resource, std::uint64_t most);
// Sets resource limits for everything inside. The plan's own limits apply exactly; if one cannot,
// the report's item names it.
int set_rlimits(const Plan& plan, SetupReport& report);
// Takes the ids, which must be mapped. If only one id is mapped, the process has it already.
int become(const User& user);
// Drops capabilities from all sets, permanently. `root` keeps those over its own files and
// processes.
int drop_capabilities(Identity identity);
int forbid_new_privileges();
// From now on files are created as this user and group, with the process's rights over files. For
// root only.
int make_files_as(uid_t user);

}  // namespace berth::keeper::sandbox
