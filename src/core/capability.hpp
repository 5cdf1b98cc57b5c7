#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"

#include <set>

namespace berth::core {

// The operations that a provider's sandboxes support.
struct SandboxCapabilities {
  bool reusable_leases = false;
  bool native_sync_in = false;
  bool native_sync_out = false;
  bool persistent_process_sessions = false;
  bool independent_control_commands = false;
  bool incremental_session_output = false;
  bool concurrent_sync_operations = false;
  bool duplex_command_stream = false;

  friend bool operator==(const SandboxCapabilities&, const SandboxCapabilities&) = default;
};
BOOST_DESCRIBE_STRUCT(SandboxCapabilities, (),
                      (reusable_leases, native_sync_in, native_sync_out,
                       persistent_process_sessions, independent_control_commands,
                       incremental_session_output, concurrent_sync_operations,
                       duplex_command_stream))

// What a provider's manifest declares. An absent entry defaults to "yes" for some capabilities and
// "no" for others.
struct DeclaredCapabilities {
  std::optional<bool> reusable_leases;
  std::optional<bool> native_sync_in;
  std::optional<bool> native_sync_out;
  std::optional<bool> persistent_process_sessions;
  std::optional<bool> independent_control_commands;
  std::optional<bool> incremental_session_output;
  std::optional<bool> concurrent_sync_operations;
  std::optional<bool> duplex_command_stream;
};
BOOST_DESCRIBE_STRUCT(DeclaredCapabilities, (),
                      (reusable_leases, native_sync_in, native_sync_out,
                       persistent_process_sessions, independent_control_commands,
                       incremental_session_output, concurrent_sync_operations,
                       duplex_command_stream))

// Facts that restrict capabilities for one lease.
struct CapabilityLimits {
  LeasePolicy policy = LeasePolicy::ephemeral;
  std::string backend;  // "job": commands run in a batch job, which has no file sync
  bool native_file_sync_unsupported = false;
  bool config_unresolved = false;  // the config's secrets could not be read
};

// A capability is effective if the worker's methods support it, the manifest declares it, and no
// limit removes it. Without a declaration there are none.
SandboxCapabilities effective_capabilities(const std::set<std::string>& worker_methods,
                                           const std::optional<DeclaredCapabilities>& declared,
                                           const CapabilityLimits& limits);

}  // namespace berth::core
