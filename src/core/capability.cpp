#include "core/capability.hpp"

namespace berth::core {

SandboxCapabilities effective_capabilities(const std::set<std::string>& worker_methods,
                                           const std::optional<DeclaredCapabilities>& declared,
                                           const CapabilityLimits& limits) {
  if (!declared) return {};
  const auto has = [&](std::initializer_list<const char*> methods) {
    return std::ranges::all_of(methods, [&](const char* m) { return worker_methods.contains(m); });
  };
  const bool executes = has({"environmentExecute"});
  const bool sync_in = has({"environmentSyncIn"});
  const bool sync_out = has({"environmentSyncOut"});
  const bool reusable =
      has({"environmentResumeLease", "environmentReleaseLease", "environmentDestroyLease"});
  const bool files = limits.backend != "job" && !limits.native_file_sync_unsupported;
  const bool sessions = executes && !limits.config_unresolved;

  return {
      .reusable_leases = reusable && declared->reusable_leases.value_or(true) &&
                         limits.policy == LeasePolicy::reuse_by_environment,
      .native_sync_in = sync_in && files && declared->native_sync_in.value_or(true),
      .native_sync_out = sync_out && files && declared->native_sync_out.value_or(true),
      .persistent_process_sessions =
          sessions && declared->persistent_process_sessions.value_or(true),
      .independent_control_commands =
          executes && declared->independent_control_commands.value_or(true),
      .incremental_session_output =
          sessions && declared->incremental_session_output.value_or(false),
      .concurrent_sync_operations =
          sync_in && sync_out && files && declared->concurrent_sync_operations.value_or(false),
      .duplex_command_stream = has({"duplexChannelOpen"}) && !limits.config_unresolved &&
                               declared->duplex_command_stream.value_or(false),
  };
}

}  // namespace berth::core
