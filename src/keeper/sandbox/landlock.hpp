#pragma once

namespace berth::keeper::sandbox {

// Denies for ever, to the calling process and all it starts: device nodes, changes of the mount
// tree, signals to processes outside and abstract sockets outside. A second wall behind the
// namespaces. 0 or errno; ENOSYS and EOPNOTSUPP when the kernel has none.
int restrict_with_landlock();

}  // namespace berth::keeper::sandbox
