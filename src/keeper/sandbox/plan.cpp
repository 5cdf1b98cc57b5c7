#include "keeper/sandbox/plan.hpp"

#include "base/text.hpp"
#include "keeper/sandbox/cgroup/cgroup_settings.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>

namespace berth::keeper::sandbox {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Level::count_)> level_names{
    "minimal", "weak", "standard", "strong"};
constexpr std::uint32_t known_weakenings =
    AllowPtrace::bit | AllowNestedNamespaces::bit | AllowHostNetwork::bit;
constexpr std::uint64_t tmpfs_bytes_min = 64 << 10;
constexpr std::uint64_t root_inodes_min = 512;

std::unexpected<Error> wrong_plan(std::string message, std::string remedy = {}) {
  return fail(Errc::validation_failed, "the plan of the sandbox: " + std::move(message),
              std::move(remedy));
}

// Absolute and normalized, so that a textual check cannot miss what the path means.
bool is_plain_plan_path(std::string_view path) {
  if (path.size() < 2 || path.size() > plan_limits::path_bytes || path[0] != '/') return false;
  if (path.contains('\0') || path.ends_with('/')) return false;
  for (std::size_t at = 1; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") return false;
    at = end + 1;
  }
  return true;
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// The sandbox's own mounts are part of its isolation.
Result<> check_target(std::string_view what, const std::string& target) {
  if (!is_plain_plan_path(target)) {
    return wrong_plan(
        std::string{what} + " " + in_quotes(target) + " is not an absolute path",
        "write it without '.', '..', double or trailing slashes, and not as '/' itself");
  }
  for (const std::string_view taken : {"/proc", "/dev", "/sys"}) {
    if (is_below(target, taken)) {
      return wrong_plan(std::string{what} + " " + in_quotes(target) + " lies in " +
                        std::string{taken} + ", which is the sandbox's own");
    }
  }
  return {};
}

Result<> check_root(const Plan& plan) {
  if (plan.layers.size() > plan_limits::layers || plan.binds.size() > plan_limits::binds ||
      plan.directories.size() > plan_limits::directories) {
    return wrong_plan("more than " + std::to_string(plan_limits::layers) + " layers, " +
                      std::to_string(plan_limits::binds) + " binds or " +
                      std::to_string(plan_limits::directories) + " directories");
  }
  if (plan.base == Base::layers && plan.layers.empty()) return wrong_plan("there is no layer");
  for (const std::string& layer : plan.layers) {
    if (!is_plain_plan_path(layer)) {
      return wrong_plan("the layer " + in_quotes(layer) + " is not an absolute path");
    }
  }
  if (!plan.upper_folder.empty() && !is_plain_plan_path(plan.upper_folder)) {
    return wrong_plan("the upper folder " + in_quotes(plan.upper_folder) +
                      " is not an absolute path");
  }
  for (const Bind& bind : plan.binds) {
    if (!is_plain_plan_path(bind.source)) {
      return wrong_plan("the bind of " + in_quotes(bind.source) + " is not an absolute path");
    }
    BERTH_DO(check_target("the bind to", bind.target));
  }
  for (const std::string& directory : plan.directories) {
    BERTH_DO(check_target("the directory", directory));
  }
  if (!plan.kept_folder.empty()) {
    BERTH_DO(check_target("the kept folder", plan.kept_folder));
    if (!plan.upper_folder.empty()) {
      return wrong_plan("a folder is kept only of a root that is in memory");
    }
  }
  return {};
}

Result<> check_sizes(const Plan& plan) {
  const bool in_memory = plan.upper_folder.empty();
  const bool too_small = (in_memory && plan.upper_bytes < tmpfs_bytes_min) ||
                         (plan.tmp_bytes != 0 && plan.tmp_bytes < tmpfs_bytes_min) ||
                         plan.shm_bytes < tmpfs_bytes_min;
  if (too_small) return wrong_plan("a size in memory is less than 64 KiB");
  if (in_memory && plan.upper_inodes < root_inodes_min) {
    return wrong_plan("fewer than " + std::to_string(root_inodes_min) +
                      " files in the root leave no room for its own");
  }
  if (plan.scratch_inodes == 0) return wrong_plan("/tmp and /dev/shm may hold no file");
  return check(plan.limits);
}

Result<> check_rlimits(const Plan& plan) {
  if (plan.rlimits.size() > plan_limits::rlimits) return wrong_plan("there are too many rlimits");
  for (const Rlimit& limit : plan.rlimits) {
    if (limit.resource < 0 || limit.resource >= RLIMIT_NLIMITS || limit.soft > limit.hard) {
      return wrong_plan("rlimit " + std::to_string(limit.resource) +
                        " does not exist, or its soft value is above its hard one");
    }
  }
  return {};
}

Result<> check_user(const User& user) {
  const auto is_ours = [](std::uint32_t id) { return id < plan_limits::ids; };
  if (!is_ours(user.uid) || !is_ours(user.gid) || !std::ranges::all_of(user.groups, is_ours)) {
    return wrong_plan("its user has an id above 65535", "a sandbox has the ids from 0 to 65535");
  }
  if (user.groups.size() > plan_limits::groups) {
    return wrong_plan("its user is in more than " + std::to_string(plan_limits::groups) +
                      " groups");
  }
  return {};
}

bool is_hostname(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.size() <= plan_limits::hostname_bytes &&
         std::ranges::all_of(name, fits);
}

}  // namespace

std::string_view name_of(Level level) {
  return level_names[static_cast<std::size_t>(level)];
}

Result<> check(const Plan& plan) {
  BERTH_DO(check_root(plan));
  BERTH_DO(check_sizes(plan));
  BERTH_DO(check_rlimits(plan));
  BERTH_DO(check_user(plan.user));
  if (!is_hostname(plan.hostname)) {
    return wrong_plan(in_quotes(plan.hostname) + " is not a host name",
                      "use up to 64 letters, digits, '-' and '.'");
  }
  if (plan.uid_base % plan_limits::ids != 0 || plan.uid_base > UINT32_MAX - 2 * plan_limits::ids) {
    return wrong_plan("the ids of a sandbox start at a multiple of 65536");
  }
  if ((plan.weakenings & ~known_weakenings) != 0) {
    return wrong_plan("it asks for a weakening that does not exist");
  }
  return {};
}

}  // namespace berth::keeper::sandbox
