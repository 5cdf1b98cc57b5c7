#pragma once

#include "base/result.hpp"
#include "core/rows/agent_home.hpp"

#include <string>

// The homes of agents on the disk of this server. Each has a folder of the server's own, and in it
// `home`, which the agent fills: the server neither follows a link there nor executes anything.
namespace berth::execution {

enum class HomeOwner {
  server,   // of commands that run as the server's own user
  without,  // a user without rights, who is somebody in a sandbox only
};

// Other users of this machine do not get past the folder around it, whatever modes the agent sets.
// Made where it is missing; returns its path. May be repeated, and blocks.
Result<std::string> make_home_folder(const std::string& root, const core::AgentHomeId& id,
                                     HomeOwner owner);

}  // namespace berth::execution
