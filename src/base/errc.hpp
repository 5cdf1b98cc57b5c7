#pragma once

#include <string_view>

namespace berth {

// Every cause of failure that a program may branch on, in one list, so that a name is spelled once
// and never changes. The name is what the wire, the run row and the log carry. Beside it stands the
// kind of failure, which is all that HTTP needs to know of it.
#define BERTH_ERRC_LIST(X)                         \
  /* ours */                                       \
  X(bug, fault)                                    \
  X(cancelled, unavailable)                        \
  X(timed_out, timed_out)                          \
  X(io_failed, fault)                              \
  X(disk_full, disk_full)                          \
  /* what a caller sent */                         \
  X(bad_request, bad_input)                        \
  X(validation_failed, bad_input)                  \
  X(unprocessable, refused)                        \
  X(body_too_large, body_too_large)                \
  X(header_too_large, header_too_large)            \
  X(unsupported_media_type, wrong_media)           \
  X(route_not_found, not_found)                    \
  X(method_not_allowed, wrong_method)              \
  X(conflict, conflict)                            \
  X(precondition_failed, changed_meanwhile)        \
  X(idempotency_key_reused, refused)               \
  X(request_timed_out, slow_caller)                \
  X(overloaded, unavailable)                       \
  /* who a caller is */                            \
  X(unauthenticated, unauthenticated)              \
  X(forbidden, forbidden)                          \
  X(not_allowed_here, forbidden)                   \
  X(untrusted_origin, forbidden)                   \
  X(untrusted_host, forbidden)                     \
  X(local_user_not_trusted, forbidden)             \
  /* objects */                                    \
  X(company_not_found, not_found)                  \
  X(company_in_use, conflict)                      \
  X(company_name_taken, conflict)                  \
  X(agent_not_found, not_found)                    \
  X(environment_not_found, not_found)              \
  X(environment_inactive, refused)                 \
  X(environment_name_taken, conflict)              \
  X(environment_local_exists, conflict)            \
  X(environment_delete_blocked, conflict)          \
  X(environment_pending_sandbox_cleanup, conflict) \
  X(unsupported_environment, refused)              \
  X(unsupported_adapter_environment, refused)      \
  X(provider_unavailable, refused)                 \
  X(lease_not_found, not_found)                    \
  X(sandbox_not_found, not_found)                  \
  X(run_not_found, not_found)                      \
  X(token_not_found, not_found)                    \
  X(secret_not_found, not_found)                   \
  X(secret_name_taken, conflict)                   \
  X(secret_key_taken, conflict)                    \
  X(secret_inactive, refused)                      \
  X(secret_missing, refused)                       \
  X(secret_version_stale, conflict)                \
  X(secret_version_missing, refused)               \
  X(secret_version_inactive, refused)              \
  X(binding_missing, refused)                      \
  /* a command and who holds it */                 \
  X(command_not_found, refused)                    \
  X(command_not_executable, refused)               \
  X(command_too_large, refused)                    \
  X(command_start_failed, refused)                 \
  X(working_directory_missing, refused)            \
  X(variable_name_invalid, refused)                \
  X(exec_not_found, not_found)                     \
  X(exec_id_reused, conflict)                      \
  X(keeper_unreachable, place_failed)              \
  X(keeper_protocol, fault)                        \
  X(keeper_full, unavailable)                      \
  X(keeper_stopping, unavailable)                  \
  /* places, leases and runs */                    \
  X(lease_acquire_failed, place_failed)            \
  X(lease_release_failed, place_failed)            \
  X(lease_lapsed, place_failed)                    \
  X(workspace_realization_failed, place_failed)    \
  X(execution_unsupported, refused)                \
  X(process_lost, place_failed)                    \
  X(command_failed, refused)                       \
  X(run_not_running, conflict)                     \
  X(node_fenced, unavailable)                      \
  X(log_unavailable, unavailable)                  \
  X(agent_not_runnable, refused)                   \
  X(callback_unreachable, place_failed)            \
  /* why an agent's program failed */              \
  X(agent_key_refused, refused)                    \
  X(agent_quota_exceeded, refused)                 \
  X(agent_model_unknown, refused)                  \
  X(agent_model_overloaded, place_failed)          \
  X(agent_model_unreachable, place_failed)         \
  X(agent_model_unreadable, place_failed)          \
  X(agent_egress_denied, refused)                  \
  X(agent_turn_limit, refused)                     \
  X(agent_session_lost, refused)                   \
  X(agent_root_refused, refused)                   \
  X(agent_instructions_missing, refused)           \
  /* a host behind ssh */                          \
  X(ssh_failed, place_failed)                      \
  X(ssh_unreachable, place_failed)                 \
  X(ssh_host_key_unknown, place_failed)            \
  X(ssh_host_key_changed, place_failed)            \
  X(ssh_auth_failed, place_failed)                 \
  X(ssh_key_invalid, refused)                      \
  X(remote_disk_full, place_failed)                \
  X(remote_unsupported, place_failed)              \
  /* our own sandbox */                            \
  X(sandbox_unavailable, refused)                  \
  X(sandbox_setup_failed, place_failed)            \
  X(isolation_too_weak, refused)                   \
  X(out_of_memory, refused)                        \
  X(image_not_found, not_found)                    \
  X(image_invalid, refused)                        \
  X(image_digest_mismatch, refused)                \
  X(image_in_use, conflict)                        \
  X(template_not_found, not_found)                 \
  X(file_not_found, not_found)                     \
  X(path_refused, refused)                         \
  X(port_unreachable, place_failed)                \
  /* workspaces and their snapshots */             \
  X(git_unavailable, fault)                        \
  X(git_failed, fault)                             \
  X(snapshot_not_found, not_found)                 \
  X(workspace_invalid, refused)                    \
  X(workspace_too_large, refused)                  \
  X(workspace_unsteady, conflict)                  \
  X(workspace_busy, unavailable)                   \
  X(workspace_corrupt, fault)                      \
  X(merge_conflict, conflict)                      \
  X(bundle_invalid, refused)                       \
  X(bundle_too_large, refused)                     \
  /* plugins */                                    \
  X(plugin_not_found, not_found)                   \
  X(plugin_exists, conflict)                       \
  X(plugin_not_ready, refused)                     \
  X(plugin_unavailable, place_failed)              \
  X(plugin_call_failed, place_failed)              \
  X(plugin_protocol, place_failed)                 \
  X(plugin_manifest_invalid, refused)              \
  X(plugin_package_invalid, bad_input)             \
  X(plugin_install_failed, place_failed)           \
  X(plugin_in_use, conflict)                       \
  X(plugin_review_needed, conflict)                \
  X(setup_session_not_found, not_found)            \
  /* the vault */                                  \
  X(master_key_invalid, fault)                     \
  X(master_key_missing, fault)                     \
  X(master_key_exposed, fault)                     \
  X(unseal_failed, fault)                          \
  /* the store */                                  \
  X(store_unreachable, unavailable)                \
  X(store_locked, unavailable)                     \
  X(store_read_only, unavailable)                  \
  X(store_full, disk_full)                         \
  X(store_corrupt, fault)                          \
  X(store_newer, fault)                            \
  X(store_constraint, conflict)                    \
  X(store_failed, fault)                           \
  /* the program's own settings */                 \
  X(config_invalid, fault)                         \
  X(listen_failed, fault)                          \
  X(server_unreachable, place_failed)              \
  /* quotas and rates */                           \
  X(rate_limited, over_limit)                      \
  X(quota_exceeded, over_limit)

enum class ErrorKind {
  bad_input,
  unauthenticated,
  forbidden,
  not_found,
  wrong_method,
  slow_caller,
  conflict,
  changed_meanwhile,
  body_too_large,
  wrong_media,
  refused,
  over_limit,
  header_too_large,
  fault,
  place_failed,
  unavailable,
  timed_out,
  disk_full,
};

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
