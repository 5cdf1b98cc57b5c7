#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"

#include <set>

namespace berth::core {

// What can be done with a sandbox of a provider.
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

// What a provider's manifest says of itself; an absent line is "yes" for some capabilities and "no"
// for others.
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

// What narrows a capability for one lease.
struct CapabilityLimits {
  LeasePolicy policy = LeasePolicy::ephemeral;
  std::string backend;  // "job": commands run in a batch job, which has no file sync
  bool native_file_sync_unsupported = false;
  bool config_unresolved = false;  // the config's secrets could not be read
};

// Verified by the worker's methods, and declared, and not narrowed. Without a declaration nothing
// is possible.
SandboxCapabilities effective_capabilities(const std::set<std::string>& worker_methods,
                                           const std::optional<DeclaredCapabilities>& declared,
                                           const CapabilityLimits& limits);

}  // namespace berth::core
