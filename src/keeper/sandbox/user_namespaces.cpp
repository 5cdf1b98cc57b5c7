#include "keeper/sandbox/user_namespaces.hpp"

#include "base/files.hpp"

#include <unistd.h>

namespace berth::keeper::sandbox {
namespace {

constexpr std::size_t setting_bytes_max = 4096;

std::string setting(const char* path) {
  std::string text = read_file(path, setting_bytes_max).value_or("");
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Prohibition why_no_user_namespaces() {
  if (::access("/proc/self/ns/user", F_OK) != 0) {
    return {.reason = "this kernel has no user namespaces",
            .remedy = "use a kernel with CONFIG_USER_NS"};
  }
  if (setting("/proc/sys/user/max_user_namespaces") == "0") {
    return {.reason = "user.max_user_namespaces is 0",
            .remedy = "sysctl -w user.max_user_namespaces=15000"};
  }
  // Neither of these is about root.
  const bool is_ordinary = ::geteuid() != 0;
  if (is_ordinary && setting("/proc/sys/kernel/unprivileged_userns_clone") == "0") {
    return {.reason = "kernel.unprivileged_userns_clone is 0",
            .remedy = "sysctl -w kernel.unprivileged_userns_clone=1"};
  }
  if (is_ordinary && setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1") {
    return {.reason = "AppArmor keeps user namespaces from programs without a profile",
            .remedy =
                "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or load a profile "
                "for berth-keeper with the rule 'userns,' (package apparmor)"};
  }
  return {.reason = "a container or a system-call filter around the server forbids them",
          .remedy =
              "run the server outside of the container or filter that forbids user "
              "namespaces, or let it allow them"};
}

}  // namespace berth::keeper::sandbox
