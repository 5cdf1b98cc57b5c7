#pragma once

#include "keeper/sandbox/plan.hpp"
#include "keeper/sandbox/setup.hpp"

#include <sys/types.h>

#include <cstdint>
#include <vector>

// Who the processes of a sandbox are, and what they can never become. For the calling process and
// all it starts; each returns 0 or errno.
namespace berth::keeper::sandbox {

// No more of this resource than that; less where the process is held to less and may not change it.
int bound(int resource, std::uint64_t most);
// Nobody inside may have more of anything than this. Each of the plan's own limits holds as it is,
// or the report's item is the one that cannot.
int set_rlimits(const Plan& plan, SetupReport& report);
// Takes the ids, which must be mapped. Where a single id is mapped, it has it already.
int become(const User& user);
// Drops capabilities from all sets, for ever. `root` keeps those over its own files and processes.
int drop_capabilities(Identity identity);
int forbid_new_privileges();
// Files are made as this user and group from now on, with the rights over files that the process
// has. For root only.
int make_files_as(uid_t user);

}  // namespace berth::keeper::sandbox
