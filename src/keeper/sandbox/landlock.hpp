#pragma once

#include "keeper/sandbox/setup.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace berth::keeper::sandbox {

// The version of what this kernel can deny; 0: it has no Landlock that is of use.
int landlock_version();

// Denies for ever, to the calling process and all it starts: device nodes, changes of the mount
// tree, signals to processes outside and abstract sockets outside. A second wall behind the
// namespaces. 0 or errno; ENOSYS and EOPNOTSUPP when the kernel has none.
int restrict_with_landlock();

// The same where it is the only wall: of all files it leaves the programs of the host, what they
// cannot do without and the process table, to be read, and what is in the folder. Says which
// features that gives. 0 or errno.
int leave_only_folder(int folder, Features& features);

// The same for a plugin's worker, which has several folders and connects to some TCP ports. A
// kernel that limits no ports lets it connect to every one: see landlock_limits_ports().
struct LandlockExtent {
  std::vector<std::string> readable = {};
  std::vector<std::string> writable = {};
  std::vector<std::uint16_t> ports = {};
};
int leave_only(const LandlockExtent& extent, Features& features);
bool landlock_limits_ports();

}  // namespace berth::keeper::sandbox
