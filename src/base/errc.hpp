#pragma once

#include <string_view>

namespace berth {

// Every cause of failure that a program may branch on, in one list, so that a name is spelled once
// and never changes. The name is what the wire, the run row and the log carry; http/status.cpp
// turns it into an HTTP status.
#define BERTH_ERRC_LIST(X)               \
  /* ours */                             \
  X(bug)                                 \
  X(cancelled)                           \
  X(timed_out)                           \
  X(io_failed)                           \
  X(disk_full)                           \
  /* what a caller sent */               \
  X(bad_request)                         \
  X(validation_failed)                   \
  X(unprocessable)                       \
  X(body_too_large)                      \
  X(header_too_large)                    \
  X(unsupported_media_type)              \
  X(route_not_found)                     \
  X(method_not_allowed)                  \
  X(conflict)                            \
  X(precondition_failed)                 \
  X(idempotency_key_reused)              \
  X(request_timed_out)                   \
  X(overloaded)                          \
  /* who a caller is */                  \
  X(unauthenticated)                     \
  X(forbidden)                           \
  X(not_allowed_here)                    \
  X(untrusted_origin)                    \
  X(untrusted_host)                      \
  X(local_user_not_trusted)              \
  /* objects */                          \
  X(company_not_found)                   \
  X(company_in_use)                      \
  X(company_name_taken)                  \
  X(agent_not_found)                     \
  X(environment_not_found)               \
  X(environment_inactive)                \
  X(environment_name_taken)              \
  X(environment_local_exists)            \
  X(environment_delete_blocked)          \
  X(environment_pending_sandbox_cleanup) \
  X(unsupported_environment)             \
  X(unsupported_adapter_environment)     \
  X(provider_unavailable)                \
  X(lease_not_found)                     \
  X(sandbox_not_found)                   \
  X(run_not_found)                       \
  X(token_not_found)                     \
  X(secret_not_found)                    \
  X(secret_name_taken)                   \
  X(secret_key_taken)                    \
  X(secret_inactive)                     \
  X(secret_missing)                      \
  X(secret_version_stale)                \
  X(secret_version_missing)              \
  X(secret_version_inactive)             \
  X(binding_missing)                     \
  /* a command and who holds it */       \
  X(command_not_found)                   \
  X(command_not_executable)              \
  X(command_too_large)                   \
  X(command_start_failed)                \
  X(working_directory_missing)           \
  X(variable_name_invalid)               \
  X(exec_not_found)                      \
  X(exec_id_reused)                      \
  X(keeper_unreachable)                  \
  X(keeper_protocol)                     \
  X(keeper_full)                         \
  X(keeper_stopping)                     \
  /* places, leases and runs */          \
  X(lease_acquire_failed)                \
  X(lease_release_failed)                \
  X(lease_lapsed)                        \
  X(workspace_realization_failed)        \
  X(execution_unsupported)               \
  X(process_lost)                        \
  X(command_failed)                      \
  X(run_not_running)                     \
  X(node_fenced)                         \
  X(log_unavailable)                     \
  X(agent_not_runnable)                  \
  X(callback_unreachable)                \
  /* why an agent's program failed */    \
  X(agent_key_refused)                   \
  X(agent_quota_exceeded)                \
  X(agent_model_unknown)                 \
  X(agent_model_overloaded)              \
  X(agent_model_unreachable)             \
  X(agent_model_unreadable)              \
  X(agent_egress_denied)                 \
  X(agent_turn_limit)                    \
  X(agent_session_lost)                  \
  X(agent_root_refused)                  \
  X(agent_instructions_missing)          \
  /* a host behind ssh */                \
  X(ssh_failed)                          \
  X(ssh_unreachable)                     \
  X(ssh_host_key_unknown)                \
  X(ssh_host_key_changed)                \
  X(ssh_auth_failed)                     \
  X(ssh_key_invalid)                     \
  X(remote_disk_full)                    \
  X(remote_unsupported)                  \
  /* our own sandbox */                  \
  X(sandbox_unavailable)                 \
  X(sandbox_setup_failed)                \
  X(isolation_too_weak)                  \
  X(out_of_memory)                       \
  X(image_not_found)                     \
  X(image_invalid)                       \
  X(image_digest_mismatch)               \
  X(image_in_use)                        \
  X(template_not_found)                  \
  X(file_not_found)                      \
  X(path_refused)                        \
  X(port_unreachable)                    \
  /* plugins */                          \
  X(plugin_not_found)                    \
  X(plugin_exists)                       \
  X(plugin_not_ready)                    \
  X(plugin_unavailable)                  \
  X(plugin_call_failed)                  \
  X(plugin_protocol)                     \
  X(plugin_manifest_invalid)             \
  X(plugin_package_invalid)              \
  X(plugin_install_failed)               \
  X(plugin_in_use)                       \
  X(plugin_review_needed)                \
  X(setup_session_not_found)             \
  /* the vault */                        \
  X(master_key_invalid)                  \
  X(master_key_missing)                  \
  X(master_key_exposed)                  \
  X(unseal_failed)                       \
  /* the store */                        \
  X(store_unreachable)                   \
  X(store_locked)                        \
  X(store_read_only)                     \
  X(store_full)                          \
  X(store_corrupt)                       \
  X(store_newer)                         \
  X(store_constraint)                    \
  X(store_failed)                        \
  /* the program's own settings */       \
  X(config_invalid)                      \
  X(listen_failed)                       \
  X(server_unreachable)                  \
  /* quotas and rates */                 \
  X(rate_limited)                        \
  X(quota_exceeded)

enum class Errc {
#define X(name, kind) name,
  BERTH_ERRC_LIST(X)
#undef X
};

constexpr std::string_view name_of(Errc code) {
  switch (code) {
#define X(name, kind) \
  case Errc::name: return #name;
    BERTH_ERRC_LIST(X)
#undef X
  }
  return "bug";
}

constexpr ErrorKind kind_of(Errc code) {
  switch (code) {
#define X(name, kind) \
  case Errc::name: return ErrorKind::kind;
    BERTH_ERRC_LIST(X)
#undef X
  }
  return ErrorKind::fault;
}

}  // namespace berth
