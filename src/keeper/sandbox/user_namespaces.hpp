#pragma once

#include <string>

namespace berth::keeper::sandbox {

// Why whoever asks can make no user namespace here, and the command that lets him. Looks at the
// settings of the kernel, so it is for where one could not be made.
struct Prohibition {
  std::string reason = {};
  std::string remedy = {};
};
Prohibition why_no_user_namespaces();

}  // namespace berth::keeper::sandbox
