#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

namespace berth::keeper::sandbox {

// Ids in a user namespace and the host ids that they map to.
struct IdMap {
  std::uint32_t inside = 0;
  std::uint32_t outside = 0;
  std::uint32_t count = 1;
};

// A user namespace without processes, to be entered or applied to mounts.
class UserNamespace {
 public:
  UserNamespace() = default;
  // Needs root. `sandbox_unavailable` if user namespaces are not available at all.
  static Result<UserNamespace> make(const IdMap& users, const IdMap& groups);
  ~UserNamespace();
  UserNamespace(UserNamespace&& other) noexcept
      : maker_(std::exchange(other.maker_, 0)), handle_(std::move(other.handle_)) {}
  UserNamespace& operator=(UserNamespace&& other) noexcept {
    std::swap(maker_, other.maker_);
    std::swap(handle_, other.handle_);
    return *this;
  }

  int get() const { return handle_.get(); }

 private:
  pid_t maker_ = 0;  // its first process, which was killed and must be reaped
  Fd handle_;
};

// Whose interfaces, addresses and abstract sockets a sandbox sees.
enum class Network : std::uint8_t { own, host };

struct NewProcess {
  pid_t pid = 0;  // 0 in the child
  Fd handle;      // readable when it has ended
};
// fork(2) into new namespaces, and into the cgroup of the directory unless that is -1. On failure
// `pid` is -1 and errno is set.
NewProcess fork_into(std::uint64_t namespaces, int cgroup_directory);

// Setup by the first process of new namespaces. Returns 0 or errno.
int map_own_id(const IdMap& users, const IdMap& groups);
int bring_up_loopback();
int own_mounts();
int set_hostname(const std::string& name);

}  // namespace berth::keeper::sandbox
