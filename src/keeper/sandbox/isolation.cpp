#include "keeper/sandbox/isolation.hpp"

#include "keeper/sandbox/user_namespaces.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace berth::keeper::sandbox {
namespace {

// A feature whose absence lowers the level, the level without it, and how to get it.
struct Loss {
  Feature feature;
  Level at_most;
  const char* reason;
  const char* remedy;
};

constexpr Loss losses[] = {
    {Feature::uid_range, Level::standard,
     "the keeper is not this machine's root, so outside everybody inside is the keeper's own user",
     "run the server as root, in no user namespace; each sandbox then has 65536 ids of its own"},
    {Feature::network_namespace, Level::weak, "the plan allows the host's network",
     "drop the weakening"},
    {Feature::landlock, Level::standard, "this kernel has no Landlock, or it is switched off",
     "a kernel of 5.19 or newer with landlock in its lsm= list"},
};

void name_features(Confined& confined, Features features) {
  for (unsigned i = 0; i < static_cast<unsigned>(Feature::count_); ++i) {
    const auto feature = static_cast<Feature>(i);
    if (features.has(feature)) confined.features.emplace_back(name_of(feature));
  }
}

void miss(Confined& confined, Feature feature, std::string reason, std::string remedy) {
  confined.missing.push_back({.feature = std::string{name_of(feature)},
                              .reason = std::move(reason),
                              .remedy = std::move(remedy)});
}

void miss(Confined& confined, const std::vector<Unenforced>& unenforced) {
  for (const Unenforced& limit : unenforced) {
    confined.missing.push_back(
        {.feature = limit.limit, .reason = limit.why, .remedy = limit.remedy});
  }
}

// Root's sandbox without a user namespace. It has every other layer of isolation, and no process
// inside can be 0.
void describe_plain_ids(const Plan& plan, Confined& confined) {
  const Prohibition why = why_no_user_namespaces();
  confined.level = std::min(confined.level, Level::standard);
  miss(confined, Feature::user_namespace,
       why.reason + ", so the ids inside are ordinary host ids that no other user has", why.remedy);
  if (plan.user.identity() == Identity::root) {
    confined.missing.push_back(
        {.feature = "root-identity",
         .reason = "without a user namespace no process inside is 0: commands run as an ordinary "
                   "id and cannot install packages",
         .remedy = why.remedy});
  }
  miss(confined, Feature::idmapped_root,
       "without a user namespace files of images keep their owners, and are read by their "
       "permissions for everybody",
       why.remedy);
  if (plan.binds.empty()) return;
  miss(confined, Feature::idmapped_binds,
       "without a user namespace a folder of the host is used by its permissions for everybody",
       why.remedy);
}

// A remedy for several problems is listed once, in its longest form.
void add_once(std::string_view remedy, std::vector<std::string_view>& remedies) {
  const auto has_it = [&](std::string_view other) { return other.contains(remedy); };
  if (remedy.empty() || std::ranges::any_of(remedies, has_it)) return;
  std::erase_if(remedies, [&](std::string_view other) { return remedy.contains(other); });
  remedies.push_back(remedy);
}

}  // namespace

// core/config/linux_config.cpp also computes, from a config, the highest level that each weakening
// leaves. Keep them consistent.
Confined describe(const Plan& plan, Features features, const std::vector<Unenforced>& unenforced) {
  Confined confined{.level = Level::strong};
  const auto lower = [&](Level at_most) { confined.level = std::min(confined.level, at_most); };
  if (unenforced.empty() && plan.limits.is_any()) features.add(Feature::cgroup_limits);
  name_features(confined, features);
  for (const Loss& loss : losses) {
    if (features.has(loss.feature)) continue;
    lower(loss.at_most);
    confined.missing.push_back({.feature = std::string{name_of(loss.feature)},
                                .reason = loss.reason,
                                .remedy = loss.remedy});
  }
  // A requested limit that is not in force lets one sandbox starve the host.
  if (!unenforced.empty()) lower(Level::weak);
  miss(confined, unenforced);
  if (plan.allows<AllowNestedNamespaces>()) {
    lower(Level::weak);
    confined.missing.push_back({.feature = "namespace-filter",
                                .reason = "the plan allows namespaces inside, and with them parts "
                                          "of the kernel that are root's alone",
                                .remedy = "drop the weakening"});
  }
  if (plan.allows<AllowPtrace>()) {
    lower(Level::standard);
    confined.missing.push_back({.feature = "ptrace-filter",
                                .reason = "the plan allows debuggers inside",
                                .remedy = "drop the weakening"});
  }
  const bool is_ranged = features.has(Feature::uid_range);
  if (!is_ranged && !plan.user.groups.empty()) {
    confined.missing.push_back(
        {.feature = "other-groups",
         .reason = "the keeper is not root, so the user of the sandbox is in one group, and not in "
                   "the " +
                   std::to_string(plan.user.groups.size()) + " others that it should be in",
         .remedy = "run the server as root, or name a user and a group that need no other"});
  }
  if (!features.has(Feature::user_namespace)) {
    describe_plain_ids(plan, confined);
    return confined;
  }
  // Owners look odd, but nothing becomes accessible.
  if (is_ranged && !features.has(Feature::idmapped_root)) {
    confined.missing.push_back({.feature = std::string{name_of(Feature::idmapped_root)},
                                .reason = "the filesystem of the root cannot show other owners",
                                .remedy = "keep images on ext4, xfs or btrfs"});
  }
  if (is_ranged && !features.has(Feature::idmapped_binds)) {
    confined.missing.push_back({.feature = std::string{name_of(Feature::idmapped_binds)},
                                .reason = "the filesystem of a bind cannot show other owners",
                                .remedy = "keep workspaces on ext4, xfs, btrfs or tmpfs"});
  }
  return confined;
}

Confined describe_minimal(const Plan& plan, Features features,
                          const std::vector<Unenforced>& unenforced) {
  Confined confined{.level = Level::minimal};
  if (unenforced.empty() && plan.limits.is_any()) features.add(Feature::cgroup_limits);
  name_features(confined, features);
  const Prohibition why = why_no_user_namespaces();
  const std::string remedy = why.remedy + "; or run the server as root";
  miss(confined, Feature::user_namespace,
       why.reason + ", so there are no namespaces, and commands are the keeper's own user", remedy);
  miss(confined, Feature::pid_namespace,
       "commands see which processes run on this machine, and what else /proc tells of it", remedy);
  miss(
      confined, Feature::mount_namespace,
      "paths are those of the host: commands see names, sizes and modes of its files, change modes "
      "and times of those of the keeper's user, and write to its disk without a limit of their own",
      remedy);
  miss(confined, Feature::network_namespace,
       "instead there are no sockets at all: no network, no ports, no way out", remedy);
  if (!features.has(Feature::signal_scope)) {
    miss(confined, Feature::signal_scope,
         "Landlock of this kernel stops no signals: a command may end other processes of the "
         "keeper's user, also those that hold it, and so outlive its sandbox",
         remedy + "; or a kernel of 6.12 or newer");
  }
  miss(confined, unenforced);
  return confined;
}

Result<> demand(const Plan& plan, const Confined& confined) {
  if (confined.level >= plan.min_level) return {};
  std::string lacking;
  std::vector<std::string_view> remedies;
  for (const Missing& missing : confined.missing) {
    lacking += (lacking.empty() ? "" : "; ") + missing.feature + ": " + missing.reason;
    add_once(missing.remedy, remedies);
  }
  std::string remedy;
  for (const std::string_view one : remedies) {
    remedy.append(remedy.empty() ? "" : "; ").append(one);
  }
  return fail(Errc::isolation_too_weak,
              "the sandbox would be " + std::string{name_of(confined.level)} + ", not " +
                  std::string{name_of(plan.min_level)} + ": " + lacking,
              std::move(remedy));
}

}  // namespace berth::keeper::sandbox
