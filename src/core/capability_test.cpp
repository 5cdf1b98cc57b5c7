#include "core/capability.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace berth::core {
namespace {

using Methods = std::set<std::string>;

const Methods every_method{"environmentExecute",      "environmentSyncIn",
                           "environmentSyncOut",      "environmentResumeLease",
                           "environmentReleaseLease", "environmentDestroyLease",
                           "duplexChannelOpen"};

// One row of the specification: what a capability needs, its default, and what removes it.
struct Rule {
  std::string_view name;
  bool SandboxCapabilities::* effective;
  std::optional<bool> DeclaredCapabilities::* declared;
  Methods needs;
  bool when_silent;
  std::set<std::string> taken_by;
};

const std::vector<Rule>& rules() {
  using C = SandboxCapabilities;
  using D = DeclaredCapabilities;
  const std::set<std::string> no_files{"job", "no native files"};
  const std::set<std::string> unresolved{"config unresolved"};
  static const std::vector<Rule> list = {
      {"reusableLeases",
       &C::reusable_leases,
       &D::reusable_leases,
       {"environmentResumeLease", "environmentReleaseLease", "environmentDestroyLease"},
       true,
       {"ephemeral", "reuse_by_execution_workspace", "retain_on_failure"}},
      {"nativeSyncIn",
       &C::native_sync_in,
       &D::native_sync_in,
       {"environmentSyncIn"},
       true,
       no_files},
      {"nativeSyncOut",
       &C::native_sync_out,
       &D::native_sync_out,
       {"environmentSyncOut"},
       true,
       no_files},
      {"persistentProcessSessions",
       &C::persistent_process_sessions,
       &D::persistent_process_sessions,
       {"environmentExecute"},
       true,
       unresolved},
      {"independentControlCommands",
       &C::independent_control_commands,
       &D::independent_control_commands,
       {"environmentExecute"},
       true,
       {}},
      {"incrementalSessionOutput",
       &C::incremental_session_output,
       &D::incremental_session_output,
       {"environmentExecute"},
       false,
       unresolved},
      {"concurrentSyncOperations",
       &C::concurrent_sync_operations,
       &D::concurrent_sync_operations,
       {"environmentSyncIn", "environmentSyncOut"},
       false,
       no_files},
      {"duplexCommandStream",
       &C::duplex_command_stream,
       &D::duplex_command_stream,
       {"duplexChannelOpen"},
       false,
       unresolved},
  };
  return list;
}

CapabilityLimits widest() {
  return {.policy = LeasePolicy::reuse_by_environment, .backend = "pod"};
}

const std::vector<std::pair<std::string, CapabilityLimits>>& narrowings() {
  const auto with = [](const std::function<void(CapabilityLimits&)>& change) {
    CapabilityLimits limits = widest();
    change(limits);
    return limits;
  };
  static const std::vector<std::pair<std::string, CapabilityLimits>> list = {
      {"ephemeral", with([](auto& l) { l.policy = LeasePolicy::ephemeral; })},
      {"reuse_by_execution_workspace",
       with([](auto& l) { l.policy = LeasePolicy::reuse_by_execution_workspace; })},
      {"retain_on_failure", with([](auto& l) { l.policy = LeasePolicy::retain_on_failure; })},
      {"job", with([](auto& l) { l.backend = "job"; })},
      {"no native files", with([](auto& l) { l.native_file_sync_unsupported = true; })},
      {"config unresolved", with([](auto& l) { l.config_unresolved = true; })},
  };
  return list;
}

DeclaredCapabilities declare_all(std::optional<bool> value) {
  DeclaredCapabilities declared;
  for (const Rule& rule : rules()) declared.*rule.declared = value;
  return declared;
}

TEST(Capability, RulesCoverEveryCapability) {
  EXPECT_EQ(rules().size(), boost::mp11::mp_size<MembersOf<SandboxCapabilities>>::value);
}

TEST(Capability, SilenceMeansYesForSomeAndNoForOthers) {
  const auto effective = effective_capabilities(every_method, DeclaredCapabilities{}, widest());
  for (const Rule& rule : rules()) {
    EXPECT_EQ(effective.*rule.effective, rule.when_silent) << rule.name;
  }
}

TEST(Capability, IsThereWhenVerifiedDeclaredAndNotNarrowed) {
  const auto effective = effective_capabilities(every_method, declare_all(true), widest());
  for (const Rule& rule : rules()) EXPECT_TRUE(effective.*rule.effective) << rule.name;
}

TEST(Capability, IsTakenByDeclaringItFalseAndNoOtherIs) {
  for (const Rule& denied : rules()) {
    DeclaredCapabilities declared = declare_all(true);
    declared.*denied.declared = false;
    const auto effective = effective_capabilities(every_method, declared, widest());
    for (const Rule& rule : rules()) {
      EXPECT_EQ(effective.*rule.effective, rule.name != denied.name)
          << rule.name << " with " << denied.name << " denied";
    }
  }
}

TEST(Capability, IsTakenByEachMethodItNeedsAndByNoOther) {
  for (const std::string& missing : every_method) {
    Methods methods = every_method;
    methods.erase(missing);
    const auto effective = effective_capabilities(methods, declare_all(true), widest());
    for (const Rule& rule : rules()) {
      EXPECT_EQ(effective.*rule.effective, !rule.needs.contains(missing))
          << rule.name << " without " << missing;
    }
  }
}

TEST(Capability, NeedsNoMoreThanItsOwnMethods) {
  for (const Rule& rule : rules()) {
    const auto effective = effective_capabilities(rule.needs, declare_all(true), widest());
    EXPECT_TRUE(effective.*rule.effective) << rule.name;
  }
}

TEST(Capability, IsNarrowedByExactlyTheLimitsThatTouchIt) {
  for (const auto& [name, limits] : narrowings()) {
    const auto effective = effective_capabilities(every_method, declare_all(true), limits);
    for (const Rule& rule : rules()) {
      EXPECT_EQ(effective.*rule.effective, !rule.taken_by.contains(name))
          << rule.name << " under " << name;
    }
  }
}

TEST(Capability, NothingIsPossibleWithoutADeclaration) {
  EXPECT_EQ(effective_capabilities(every_method, std::nullopt, widest()), SandboxCapabilities{});
}

TEST(Capability, ADeclarationGrantsNothingThatTheWorkerCannotDo) {
  EXPECT_EQ(effective_capabilities({}, declare_all(true), widest()), SandboxCapabilities{});
}

}  // namespace
}  // namespace berth::core
