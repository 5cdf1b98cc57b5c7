#include "places/linux/plan.hpp"

#include "core/sandbox_share.hpp"
#include "keeper/sandbox/cgroup/cgroup_settings.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

namespace berth::places {
namespace {

using core::LinuxConfig;
using keeper::sandbox::Plan;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
using core::usual_disk_mb;
using core::usual_memory_mb;
using core::usual_pids;
// As many files as would fill the disk limit with one page each, but not so many that their names
// alone take too much memory.
constexpr std::int64_t inodes_per_mb = 256;
constexpr std::int64_t usual_inodes_min = 1024;
constexpr std::int64_t usual_inodes_max = 750'000;
// The disk and file limits are divided: this part is for /tmp and /dev/shm, the rest for /.
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

std::int64_t inodes_of(const LinuxConfig& config) {
  const std::int64_t fitting = config.disk_mb.value_or(usual_disk_mb) * inodes_per_mb;
  return config.inodes.value_or(std::clamp(fitting, usual_inodes_min, usual_inodes_max));
}

// A limit: the config field that requests it, and the name under which a keeper reports it missing.
struct NamedLimit {
  std::string_view field;
  std::string name;
};

// A limit that consists of several settings is named after one of them.
std::string limit_name(const keeper::sandbox::Limits& limits, std::size_t setting = 0) {
  return keeper::sandbox::settings_of(limits).at(setting).limit;
}

std::vector<NamedLimit> limits_named_in(const LinuxConfig& config) {
  const keeper::sandbox::Limits all = limits_of(config);
  std::vector<NamedLimit> named;
  if (config.memory_mb)
    named.emplace_back("memoryMb", limit_name({.memory_bytes = all.memory_bytes}));
  if (config.swap_mb) named.emplace_back("swapMb", limit_name(all, 1));
  if (config.pids) named.emplace_back("pids", limit_name({.pids = all.pids}));
  if (config.cpus) named.emplace_back("cpus", limit_name({.cpu_millis = all.cpu_millis}));
  if (config.cpu_weight) {
    named.emplace_back("cpuWeight", limit_name({.cpu_weight = all.cpu_weight}));
  }
  return named;
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

// What the next lease of a reused sandbox finds: the work, and nothing that acts by itself. A home
// is full of such files, so a workdir that contains the home is not kept.
std::string kept_folder_of(const LinuxConfig& config, const std::string& workdir,
                           const std::string& home) {
  const bool holds_home = (home + "/").starts_with(workdir + "/");
  const bool is_kept = config.reuse_lease.value_or(false) && workdir != "/" && !holds_home;
  return is_kept ? workdir : "";
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
  const auto inodes = static_cast<std::uint64_t>(inodes_of(config));
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
  plan.kept_folder = kept_folder_of(config, workdir, user.home);
  if (config.open_files) {
    const auto files = static_cast<std::uint64_t>(*config.open_files);
    plan.rlimits.push_back({.resource = RLIMIT_NOFILE, .soft = files, .hard = files});
  }
  weaken(plan, config);
  return plan;
}

Result<> expect_limits_in_force(const LinuxConfig& config, const keeper::Confined& confined) {
  if (config.min_isolation) return {};
  std::string lacking;
  std::string remedy;
  for (const NamedLimit& limit : limits_named_in(config)) {
    const auto found = std::ranges::find(confined.missing, limit.name, &keeper::Missing::feature);
    if (found == confined.missing.end()) continue;
    lacking.append(lacking.empty() ? "" : "; ").append(limit.field).append(": the ");
    lacking += limit.name + " is not in force: " + found->reason;
    if (!remedy.contains(found->remedy)) remedy += found->remedy + "; ";
  }
  if (lacking.empty()) return {};
  return fail(Errc::isolation_too_weak, std::move(lacking),
              remedy +
                  "or go without what is named here: write minIsolation: weak into the config of "
                  "the environment, or leave the limit out of it");
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

}  // namespace berth::places
