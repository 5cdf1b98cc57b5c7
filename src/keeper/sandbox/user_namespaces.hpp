#pragma once

#include <cstdint>
#include <string>

namespace berth::keeper::sandbox {

// The host ids that sandboxes use: consecutive ranges of plan_limits::ids.
namespace id_ranges {

inline constexpr std::uint32_t first = 0x30000000;
inline constexpr std::uint32_t count = 8192;

}  // namespace id_ranges

// The rights with which the calling process makes sandboxes.
enum class Standing : std::uint8_t {
  root,  // it can assign all those ids
  user,  // it has only its own id, even if a surrounding user namespace calls that 0
  // This machine's own root in a user namespace without those ids. A process with its id would be
  // root outside, so it has no id to assign.
  lone_root,
};
Standing standing_here();

// Why the caller cannot make a user namespace here, and the command that would allow it. Reads
// kernel settings, so call it only after one could not be made.
struct Prohibition {
  std::string reason = {};
  std::string remedy = {};
};
Prohibition why_no_user_namespaces();

}  // namespace berth::keeper::sandbox
