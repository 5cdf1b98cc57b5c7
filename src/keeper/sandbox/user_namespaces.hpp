#pragma once

#include <cstdint>
#include <string>

namespace berth::keeper::sandbox {

// The ids of a machine that sandboxes have: ranges of plan_limits::ids, one after the other.
namespace id_ranges {

inline constexpr std::uint32_t first = 0x30000000;
inline constexpr std::uint32_t count = 8192;

}  // namespace id_ranges

// As whom the calling process makes sandboxes.
enum class Standing : std::uint8_t {
  root,  // it has all those ids to give
  user,  // it has its own id, whatever that is called in a user namespace around it
  // This machine's own root in a user namespace without those ids. Whoever had its id would be root
  // outside, so it has nothing to give.
  lone_root,
};
Standing standing_here();

// Why whoever asks can make no user namespace here, and the command that lets him. Looks at the
// settings of the kernel, so it is for where one could not be made.
struct Prohibition {
  std::string reason = {};
  std::string remedy = {};
};
Prohibition why_no_user_namespaces();

}  // namespace berth::keeper::sandbox
