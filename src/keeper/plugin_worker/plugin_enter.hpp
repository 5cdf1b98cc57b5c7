#pragma once

#include "keeper/plugin_worker/plugin_box.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "keeper/sandbox/setup.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

// How a process confines itself to what a plugin's box shows.
namespace berth::keeper {

struct BoxSetup {
  const PluginBox& box;
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t memory_bytes_max = 0;
  const std::optional<sandbox::Cgroup>& group;
  sandbox::Cgroup::Born born = sandbox::Cgroup::Born::outside;
  std::string start_folder = {};  // the worker's; the same path inside and outside
  int report = -1;                // to the server; the sockets are sent there
  // A server that runs as root gives each plugin its own user. Any other server has only its own
  // id, which it maps in a user namespace. Decided before the fork: the child has no id until it
  // maps one.
  enum class Identity : std::uint8_t { other_user, same_user };
  Identity identity = Identity::other_user;

  bool has_user() const { return identity == Identity::other_user; }
};

// The namespaces whose first process enter_box() expects the caller to be.
std::uint64_t namespaces_of(const BoxSetup& setup);

// With namespaces. This cannot be undone, so after a failure the process must exit.
sandbox::SetupReport enter_box(const BoxSetup& setup);
// Without namespaces: only Landlock and the system-call filter.
sandbox::SetupReport enter_weak_box(const BoxSetup& setup);

// Whether the failure means that this machine does not let the keeper create such a box at all.
bool is_forbidden_here(const sandbox::SetupReport& report);

BoxReport describe_box(const BoxSetup& setup, BoxLevel level, sandbox::Features features);
// Why no worker was started, and what the requested box lacks.
BoxReport describe_refusal(const BoxSetup& setup, const sandbox::SetupReport& report);

}  // namespace berth::keeper
