#include "providers/linux/plan.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

namespace berth::providers {
namespace {

using core::LinuxConfig;
using keeper::sandbox::Plan;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
// What is usual for a coding agent, and no danger to the machine.
constexpr std::int64_t usual_memory_mb = 4096;
constexpr std::int64_t usual_pids = 2048;
constexpr std::int64_t usual_disk_mb = 3072;
constexpr std::int64_t usual_inodes = 750'000;
// What may be written, and made, is divided: this part is for /tmp and /dev/shm, the rest for /.
constexpr std::uint64_t scratch_part = 3;
constexpr std::uint64_t shm_bytes_max = 64 * mebibyte;

std::uint64_t bytes_of(std::int64_t mb) {
  return static_cast<std::uint64_t>(mb) * mebibyte;
}

keeper::sandbox::Limits limits_of(const LinuxConfig& config) {
  return {.memory_bytes = bytes_of(config.memory_mb.value_or(usual_memory_mb)),
          .swap_bytes = bytes_of(config.swap_mb.value_or(0)),
          .pids = static_cast<std::uint32_t>(config.pids.value_or(usual_pids)),
          .cpu_millis = static_cast<std::uint32_t>(std::lround(config.cpus.value_or(0) * 1000)),
          .cpu_weight = static_cast<std::uint32_t>(config.cpu_weight.value_or(0))};
}

void weaken(Plan& plan, const LinuxConfig& config) {
  if (config.network == core::LinuxNetwork::host) plan.allow(keeper::sandbox::AllowHostNetwork{});
  for (const core::LinuxAllowance what :
       config.allow.value_or(std::vector<core::LinuxAllowance>{})) {
    switch (what) {
      case core::LinuxAllowance::ptrace: plan.allow(keeper::sandbox::AllowPtrace{}); break;
      case core::LinuxAllowance::nested_user_namespaces:
        plan.allow(keeper::sandbox::AllowNestedNamespaces{});
        break;
    }
  }
}

keeper::sandbox::Level level_of(core::Isolation isolation) {
  switch (isolation) {
    case core::Isolation::minimal: return keeper::sandbox::Level::minimal;
    case core::Isolation::weak: return keeper::sandbox::Level::weak;
    case core::Isolation::standard: return keeper::sandbox::Level::standard;
    case core::Isolation::strong: break;
  }
  return keeper::sandbox::Level::strong;
}

}  // namespace

std::string workdir_of(const LinuxConfig& config, const RootLayers& root) {
  if (config.workdir) return *config.workdir;
  return root.workdir.starts_with('/') ? root.workdir : std::string{usual_workdir};
}

InsideUser user_of(const LinuxConfig& config, const RootLayers& root) {
  const keeper::sandbox::User usual;
  InsideUser user{.uid = usual.uid, .gid = usual.gid};
  if (config.user == core::LinuxUser::root) user = {.uid = 0, .gid = 0};
  if (!config.user && root.user) {
    user = {.uid = root.user->uid,
            .gid = root.user->gid,
            .groups = root.user->groups,
            .home = root.user->home};
  }
  if (user.home.empty()) user.home = user.uid == 0 ? "/root" : "/home/sandbox";
  return user;
}

Plan plan_of(const LinuxConfig& config, const RootLayers& root) {
  using keeper::sandbox::Base;
  const InsideUser user = user_of(config, root);
  const std::uint64_t disk = bytes_of(config.disk_mb.value_or(usual_disk_mb));
  const std::uint64_t scratch = disk / scratch_part;
  const std::uint64_t shm = std::min(scratch / 2, shm_bytes_max);
  const auto inodes = static_cast<std::uint64_t>(config.inodes.value_or(usual_inodes));
  Plan plan{.base = root.layers.empty() || root.over_host ? Base::host : Base::layers,
            .layers = root.layers,
            .upper_bytes = disk - scratch,
            .upper_inodes = inodes - inodes / scratch_part,
            .tmp_bytes = scratch - shm,
            .shm_bytes = shm,
            .scratch_inodes = inodes / scratch_part,
            .user = {.uid = user.uid, .gid = user.gid, .groups = user.groups},
            .limits = limits_of(config),
            .min_level = level_of(config.min_isolation.value_or(core::Isolation::weak))};
  plan.directories = {user.home};
  const std::string workdir = workdir_of(config, root);
  if (workdir != "/") plan.directories.push_back(workdir);
  if (config.open_files) {
    const auto files = static_cast<std::uint64_t>(*config.open_files);
    plan.rlimits.push_back({.resource = RLIMIT_NOFILE, .soft = files, .hard = files});
  }
  weaken(plan, config);
  return plan;
}

bj::object isolation_of(const keeper::Confined& confined) {
  bj::array missing;
  bj::value remedy = nullptr;
  for (const keeper::Missing& one : confined.missing) {
    missing.push_back(
        bj::object{{"feature", one.feature}, {"reason", one.reason}, {"remedy", one.remedy}});
    if (remedy.is_null() && !one.remedy.empty()) remedy = bj::string(one.remedy);
  }
  return {{"level", bj::string(name_of(confined.level))},
          {"features", bj::array(confined.features.begin(), confined.features.end())},
          {"missing", std::move(missing)},
          {"remedy", std::move(remedy)}};
}

}  // namespace berth::providers
