#pragma once

#include "base/result.hpp"
#include "core/rows/agent_home.hpp"

#include <string>

// Agents' home folders on this server's disk. Each agent has a folder owned by the server, and in
// it `home`, which the agent fills: the server neither follows a link there nor executes anything.
namespace berth::places {

enum class HomeOwner {
  server,   // for commands that run as the server's own user
  without,  // a user without rights, mapped only in a sandbox
};

// The parent folder keeps out other users of this machine, whatever modes the agent sets. Creates
// the home if it is missing and returns its path. May be repeated; blocks.
Result<std::string> make_home_folder(const std::string& root, const core::AgentHomeId& id,
                                     HomeOwner owner);

}  // namespace berth::places
