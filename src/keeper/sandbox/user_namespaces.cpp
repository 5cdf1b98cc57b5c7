#include "keeper/sandbox/user_namespaces.hpp"

#include "base/files.hpp"
#include "keeper/sandbox/plan.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace berth::keeper::sandbox {
namespace {

constexpr std::size_t setting_bytes_max = 4096;

std::string setting(const char* path) {
  std::string text = read_file(path, setting_bytes_max).value_or("");
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// The inode number of a machine's initial user namespace, which no other has.
constexpr ino_t first_user_namespace = 0xEFFFFFFD;

// Parsed by hand: streams would make the keeper half as large again, and there is one per sandbox.
bool has_all_ranges(const char* map) {
  constexpr std::uint64_t end =
      id_ranges::first + std::uint64_t{id_ranges::count} * plan_limits::ids;
  const std::string text = setting(map);
  const char* at = text.c_str();
  while (true) {
    std::array<std::uint64_t, 3> line{};  // inside, outside, count
    for (std::uint64_t& number : line) {
      char* behind = nullptr;
      number = std::strtoull(at, &behind, 10);
      if (behind == at) return false;
      at = behind;
    }
    if (line[0] <= id_ranges::first && line[0] + line[2] >= end) return true;
  }
}

}  // namespace

Standing standing_here() {
  if (::geteuid() != 0) return Standing::user;
  struct stat seen{};
  if (::stat("/proc/self/ns/user", &seen) == 0 && seen.st_ino == first_user_namespace) {
    return Standing::root;
  }
  if (has_all_ranges("/proc/self/uid_map") && has_all_ranges("/proc/self/gid_map")) {
    return Standing::root;
  }
  // It belongs to the machine's root, which has another id here or none, or is the caller.
  const bool is_machines_root = ::stat("/proc/sys", &seen) != 0 || seen.st_uid == 0;
  return is_machines_root ? Standing::lone_root : Standing::user;
}

Prohibition why_no_user_namespaces() {
  if (::access("/proc/self/ns/user", F_OK) != 0) {
    return {.reason = "this kernel has no user namespaces",
            .remedy = "use a kernel with CONFIG_USER_NS"};
  }
  if (setting("/proc/sys/user/max_user_namespaces") == "0") {
    return {.reason = "user.max_user_namespaces is 0",
            .remedy = "sysctl -w user.max_user_namespaces=15000"};
  }
  // Neither of these applies to root.
  const bool is_ordinary = standing_here() != Standing::root;
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
