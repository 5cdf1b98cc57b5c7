#pragma once

#include "keeper/plugin_worker/plugin_box.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "keeper/sandbox/setup.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

// How a process becomes one that has only what a plugin's box shows.
namespace berth::keeper {

struct BoxSetup {
  const PluginBox& box;
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t memory_bytes_max = 0;
  const std::optional<sandbox::Cgroup>& group;
  sandbox::Cgroup::Born born = sandbox::Cgroup::Born::outside;
  std::string start_folder = {};  // of the worker, inside as outside
  int report = -1;                // to the server; the sockets go there
  // A server that is root gives each plugin a user of its own; any other has only its own id to
  // give, in a user namespace. Known before the fork: the child has no id until it maps one.
  enum class Identity : std::uint8_t { other_user, same_user };
  Identity identity = Identity::other_user;

  bool has_user() const { return identity == Identity::other_user; }
};

// The namespaces that enter_box() expects the calling process to be the first of.
std::uint64_t namespaces_of(const BoxSetup& setup);

// With namespaces. It cannot be undone, so after a failure the process has to end.
sandbox::SetupReport enter_box(const BoxSetup& setup);
// Without them: Landlock and the system-call filter only.
sandbox::SetupReport enter_weak_box(const BoxSetup& setup);

// Whether the failure means that this machine does not let the keeper make such a box at all.
bool is_forbidden_here(const sandbox::SetupReport& report);

BoxReport describe_box(const BoxSetup& setup, BoxLevel level, sandbox::Features features);
// Why no worker was started, and what is missing for the box that was wanted.
BoxReport describe_refusal(const BoxSetup& setup, const sandbox::SetupReport& report);

}  // namespace berth::keeper
