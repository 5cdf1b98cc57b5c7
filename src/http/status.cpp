#include "base/strings.hpp"
#include "http/server/message/message.hpp"

namespace berth::http {
namespace {

// It has exactly one value, so it is sent as a string.
constexpr std::string_view single_fact = "classification";

bj::value value_of(std::string_view name, const std::vector<std::string>& values) {
  if (name == single_fact && values.size() == 1) return bj::string(values.front());
  return encode(values);
}

bj::object details_of(const Error& error) {
  bj::object details;
  if (!error.issues.empty()) {
    bj::array issues;
    for (const Issue& issue : error.issues) {
      issues.push_back({{"path", issue.path}, {"message", issue.message}});
    }
    details["issues"] = std::move(issues);
  }
  for (const auto& [name, values] : error.facts) details[name] = value_of(name, values);
  return details;
}

}  // namespace

unsigned status_of(Errc code) {
  switch (code) {
    case Errc::bad_request:
    case Errc::plugin_package_invalid:
    case Errc::validation_failed: return 400;
    case Errc::unauthenticated: return 401;
    case Errc::forbidden:
    case Errc::not_allowed_here:
    case Errc::untrusted_origin:
    case Errc::untrusted_host:
    case Errc::local_user_not_trusted: return 403;
    case Errc::route_not_found:
    case Errc::company_not_found:
    case Errc::agent_not_found:
    case Errc::environment_not_found:
    case Errc::lease_not_found:
    case Errc::sandbox_not_found:
    case Errc::run_not_found:
    case Errc::token_not_found:
    case Errc::secret_not_found:
    case Errc::exec_not_found:
    case Errc::image_not_found:
    case Errc::template_not_found:
    case Errc::plugin_not_found:
    case Errc::setup_session_not_found:
    case Errc::file_not_found: return 404;
    case Errc::method_not_allowed: return 405;
    case Errc::request_timed_out: return 408;
    case Errc::conflict:
    case Errc::secret_version_stale:
    case Errc::company_in_use:
    case Errc::company_name_taken:
    case Errc::environment_name_taken:
    case Errc::environment_local_exists:
    case Errc::environment_delete_blocked:
    case Errc::environment_pending_sandbox_cleanup:
    case Errc::secret_name_taken:
    case Errc::secret_key_taken:
    case Errc::store_constraint:
    case Errc::exec_id_reused:
    case Errc::run_not_running:
    case Errc::plugin_exists:
    case Errc::plugin_in_use:
    case Errc::plugin_review_needed:
    case Errc::image_in_use: return 409;
    case Errc::precondition_failed: return 412;
    case Errc::body_too_large: return 413;
    case Errc::unsupported_media_type: return 415;
    case Errc::unprocessable:
    case Errc::idempotency_key_reused:
    case Errc::environment_inactive:
    case Errc::unsupported_environment:
    case Errc::unsupported_adapter_environment:
    case Errc::provider_unavailable:
    case Errc::secret_inactive:
    case Errc::secret_missing:
    case Errc::secret_version_missing:
    case Errc::secret_version_inactive:
    case Errc::binding_missing:
    case Errc::command_not_found:
    case Errc::command_not_executable:
    case Errc::command_too_large:
    case Errc::command_start_failed:
    case Errc::working_directory_missing:
    case Errc::variable_name_invalid:
    case Errc::execution_unsupported:
    case Errc::agent_not_runnable:
    case Errc::agent_key_refused:
    case Errc::agent_quota_exceeded:
    case Errc::agent_model_unknown:
    case Errc::agent_egress_denied:
    case Errc::agent_turn_limit:
    case Errc::agent_session_lost:
    case Errc::agent_root_refused:
    case Errc::agent_instructions_missing:
    case Errc::command_failed:
    case Errc::ssh_key_invalid:
    case Errc::sandbox_unavailable:
    case Errc::isolation_too_weak:
    case Errc::image_invalid:
    case Errc::image_digest_mismatch:
    case Errc::plugin_manifest_invalid:
    case Errc::plugin_not_ready:
    case Errc::path_refused:
    case Errc::out_of_memory: return 422;
    case Errc::rate_limited:
    case Errc::quota_exceeded: return 429;
    case Errc::header_too_large: return 431;
    case Errc::bug:
    case Errc::io_failed:
    case Errc::master_key_invalid:
    case Errc::master_key_missing:
    case Errc::master_key_exposed:
    case Errc::unseal_failed:
    case Errc::store_corrupt:
    case Errc::store_newer:
    case Errc::store_failed:
    case Errc::config_invalid:
    case Errc::listen_failed:
    case Errc::keeper_protocol: return 500;
    case Errc::server_unreachable:
    case Errc::keeper_unreachable:
    case Errc::lease_acquire_failed:
    case Errc::lease_release_failed:
    case Errc::lease_lapsed:
    case Errc::workspace_realization_failed:
    case Errc::process_lost:
    case Errc::callback_unreachable:
    case Errc::agent_model_overloaded:
    case Errc::agent_model_unreachable:
    case Errc::agent_model_unreadable:
    case Errc::ssh_failed:
    case Errc::ssh_unreachable:
    case Errc::ssh_host_key_unknown:
    case Errc::ssh_host_key_changed:
    case Errc::ssh_auth_failed:
    case Errc::remote_disk_full:
    case Errc::remote_unsupported:
    case Errc::sandbox_setup_failed:
    case Errc::plugin_unavailable:
    case Errc::plugin_call_failed:
    case Errc::plugin_protocol:
    case Errc::plugin_install_failed:
    case Errc::port_unreachable: return 502;
    case Errc::cancelled:
    case Errc::node_fenced:
    case Errc::log_unavailable:
    case Errc::overloaded:
    case Errc::keeper_full:
    case Errc::keeper_stopping:
    case Errc::store_unreachable:
    case Errc::store_locked:
    case Errc::store_read_only: return 503;
    case Errc::timed_out: return 504;
    case Errc::disk_full:
    case Errc::store_full: return 507;
  }
  return 500;
}

Response error_response(const Error& error) {
  bj::object body{{"error", error.message}, {"code", name_of(error.code)}};
  if (!error.remedy.empty()) body["remedy"] = error.remedy;
  bj::object details = details_of(error);
  if (!details.empty()) body["details"] = std::move(details);

  Response response = json_response(status_of(error.code), body);
  const auto allow = error.facts.find("allow");
  if (error.code == Errc::method_not_allowed && allow != error.facts.end()) {
    response.headers.emplace_back("Allow", joined(allow->second));
  }
  if (response.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (response.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace berth::http
