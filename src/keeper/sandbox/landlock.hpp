#pragma once

#include "keeper/sandbox/setup.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace berth::keeper::sandbox {

// The Landlock version of this kernel; 0 if it has none that is useful.
int landlock_version();

// Permanently denies to the calling process and its children: device nodes, changes of the mount
// tree, signals to processes outside and abstract sockets outside. A second barrier behind the
// namespaces. Returns 0 or errno; ENOSYS or EOPNOTSUPP if the kernel has no Landlock.
int restrict_with_landlock();

// The same where it is the only barrier: leaves read access to the host's programs, what they
// cannot work without and the process table, and full access to the folder. Adds the features that
// this provides. Returns 0 or errno.
int leave_only_folder(int folder, Features& features);

// The same for a plugin's worker, which has several folders and connects to some TCP ports. On a
// kernel that cannot limit ports it can connect to any: see landlock_limits_ports().
struct LandlockExtent {
  std::vector<std::string> readable = {};
  std::vector<std::string> writable = {};
  std::vector<std::uint16_t> ports = {};
};
int leave_only(const LandlockExtent& extent, Features& features);
bool landlock_limits_ports();

}  // namespace berth::keeper::sandbox
