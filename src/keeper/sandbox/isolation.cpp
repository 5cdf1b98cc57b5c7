#include "keeper/sandbox/isolation.hpp"

#include <algorithm>
#include <string>

namespace berth::keeper::sandbox {
namespace {

// A feature whose absence lowers the level, to what, and what brings it back.
struct Loss {
  Feature feature;
  Level at_most;
  const char* reason;
  const char* remedy;
};

constexpr Loss losses[] = {
    {Feature::uid_range, Level::standard,
     "the keeper is not root, so outside everybody inside is the keeper's own user",
     "run the server as root; each sandbox then has 65536 ids of its own"},
    {Feature::network_namespace, Level::weak, "the plan allows the host's network",
     "drop the weakening"},
    {Feature::landlock, Level::standard, "this kernel has no Landlock, or it is switched off",
     "a kernel of 5.19 or newer with landlock in its lsm= list"},
};

}  // namespace

Confined describe(const Plan& plan, Features features, const std::vector<Unenforced>& unenforced) {
  Confined confined{.level = Level::strong};
  const auto lower = [&](Level at_most) { confined.level = std::min(confined.level, at_most); };
  if (unenforced.empty() && plan.limits.is_any()) features.add(Feature::cgroup_limits);
  for (unsigned i = 0; i < static_cast<unsigned>(Feature::count_); ++i) {
    const auto feature = static_cast<Feature>(i);
    if (features.has(feature)) confined.features.emplace_back(name_of(feature));
  }
  for (const Loss& loss : losses) {
    if (features.has(loss.feature)) continue;
    lower(loss.at_most);
    confined.missing.push_back({.feature = std::string{name_of(loss.feature)},
                                .reason = loss.reason,
                                .remedy = loss.remedy});
  }
  // A limit that was asked for and does not hold lets one sandbox starve the host.
  for (const Unenforced& limit : unenforced) {
    lower(Level::weak);
    confined.missing.push_back(
        {.feature = limit.limit, .reason = limit.why, .remedy = limit.remedy});
  }
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
  // Ownership looks strange, but nothing is open.
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

Result<> demand(const Plan& plan, const Confined& confined) {
  if (confined.level >= plan.min_level) return {};
  std::string lacking;
  std::string remedy;
  for (const Missing& missing : confined.missing) {
    lacking += (lacking.empty() ? "" : "; ") + missing.feature + ": " + missing.reason;
    remedy += (remedy.empty() ? "" : "; ") + missing.remedy;
  }
  return fail(Errc::isolation_too_weak,
              "the sandbox would be " + std::string{name_of(confined.level)} + ", not " +
                  std::string{name_of(plan.min_level)} + ": " + lacking,
              std::move(remedy));
}

}  // namespace berth::keeper::sandbox
