#pragma once

#include "base/json/json.hpp"

#include <boost/describe/class.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

// A host's requests to a provider, and the provider's responses, as C++ values. A request is
// decoded before its hook is called, with unknown keys ignored; a field that the host omitted is an
// empty optional. In a response an empty optional is omitted, unless the protocol requires null.
namespace berth::sdk {

// The common fields of every environment request.
struct Where {
  std::string driver_key;
  std::string company_id;
  std::string environment_id;
  std::optional<std::string> issue_id;
};
BOOST_DESCRIBE_STRUCT(Where, (), (driver_key, company_id, environment_id, issue_id))

struct Lease {
  std::optional<std::string> provider_lease_id = {};  // empty from a resume: the sandbox no longer
                                                      // exists
  std::optional<bj::object> metadata = {};
  std::optional<std::string> expires_at = {};  // ISO 8601
};
BOOST_DESCRIBE_STRUCT(Lease, (), (provider_lease_id, metadata, expires_at))

struct Probe : Where {};
BOOST_DESCRIBE_STRUCT(Probe, (Where), ())

struct Diagnostic {
  std::string severity;  // info, warning or error
  std::string message;
  std::optional<std::string> code = {};
  std::optional<bj::object> details = {};
};
BOOST_DESCRIBE_STRUCT(Diagnostic, (), (severity, message, code, details))

struct Probed {
  bool ok = true;
  std::optional<std::string> summary = {};
  std::optional<std::vector<Diagnostic>> diagnostics = {};
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(Probed, (), (ok, summary, diagnostics, metadata))

// A provider's result for a config that fits its schema.
struct Verdict {
  std::vector<std::string> errors = {};
  std::vector<std::string> warnings = {};
};

struct AcquireLease : Where {
  std::string run_id;
  std::optional<std::string> workspace_mode;
  std::optional<std::string> requested_cwd;
  std::optional<std::string> agent_id;
  std::optional<std::string> execution_workspace_id;
  std::optional<std::string> adapter_type;
  std::optional<bj::object> execution_workspace_settings;
  std::optional<std::string> requested_expires_at;
};
BOOST_DESCRIBE_STRUCT(AcquireLease, (Where),
                      (run_id, workspace_mode, requested_cwd, agent_id, execution_workspace_id,
                       adapter_type, execution_workspace_settings, requested_expires_at))

struct ResumeLease : Where {
  std::string provider_lease_id;
  std::optional<bj::object> lease_metadata;
};
BOOST_DESCRIBE_STRUCT(ResumeLease, (Where), (provider_lease_id, lease_metadata))

// For release and destroy. Without an id there is nothing to do.
struct EndLease : Where {
  std::optional<std::string> provider_lease_id;
  std::optional<bj::object> lease_metadata;
  std::optional<bool> cancel_active_work;
};
BOOST_DESCRIBE_STRUCT(EndLease, (Where), (provider_lease_id, lease_metadata, cancel_active_work))

struct WorkspaceRequest {
  std::optional<std::string> local_path;
  std::optional<std::string> remote_path;
  std::optional<std::string> mode;
  std::optional<bj::object> metadata;
};
BOOST_DESCRIBE_STRUCT(WorkspaceRequest, (), (local_path, remote_path, mode, metadata))

struct RealizeWorkspace : Where {
  Lease lease;
  WorkspaceRequest workspace;
};
BOOST_DESCRIBE_STRUCT(RealizeWorkspace, (Where), (lease, workspace))

struct Workspace {
  std::string cwd;
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(Workspace, (), (cwd, metadata))

struct Execute : Where {
  Lease lease;
  std::string command;
  std::optional<std::vector<std::string>> args;
  std::optional<std::string> cwd;
  std::optional<std::map<std::string, std::string>> env;
  std::optional<std::string> stdin_;  // stdin is a macro; on the wire it is `stdin`
  std::optional<double> timeout_ms;
  std::optional<bool> bypass_session;
};
BOOST_DESCRIBE_STRUCT(Execute, (Where),
                      (lease, command, args, cwd, env, stdin_, timeout_ms, bypass_session))

// A command that ran, however it ended. If it could not start, the hook returns an error.
struct Executed {
  std::optional<std::int64_t> exit_code = {};  // empty after a signal or a time limit
  std::optional<std::string> signal = {};
  bool timed_out = false;
  std::string stdout_ = {};  // complete, including what was sent live
  std::string stderr_ = {};
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(Executed, (), (exit_code, signal, timed_out, stdout_, stderr_, metadata))

struct FileMapping {
  std::string source_path;
  std::string target_path;
  std::string kind;  // file or directory
  std::optional<std::uint32_t> mode;
  std::optional<std::vector<std::string>> exclude;
  std::optional<bool> follow_symlinks;
  std::optional<std::string> access;  // rw or ro
  std::optional<std::string> writable_path;
};
BOOST_DESCRIBE_STRUCT(FileMapping, (),
                      (source_path, target_path, kind, mode, exclude, follow_symlinks, access,
                       writable_path))

struct PostUploadCommand {
  std::string command;
  std::optional<std::string> cwd;
  std::optional<double> timeout_ms;
};
BOOST_DESCRIBE_STRUCT(PostUploadCommand, (), (command, cwd, timeout_ms))

struct SyncOperation {
  std::string operation_id;
  std::vector<FileMapping> files;
  std::optional<std::vector<PostUploadCommand>> post_upload_commands;
};
BOOST_DESCRIBE_STRUCT(SyncOperation, (), (operation_id, files, post_upload_commands))

struct Sync : Where {
  Lease lease;
  std::vector<SyncOperation> operations;
};
BOOST_DESCRIBE_STRUCT(Sync, (Where), (lease, operations))

struct OperationDone {
  std::string operation_id;
  std::int64_t files_transferred = 0;
  std::int64_t bytes_transferred = 0;
};
BOOST_DESCRIBE_STRUCT(OperationDone, (), (operation_id, files_transferred, bytes_transferred))

struct Synced {
  std::vector<OperationDone> operations;
};
BOOST_DESCRIBE_STRUCT(Synced, (), (operations))

struct StartSetup : Where {
  std::string session_id;
  std::optional<std::string> source_template_ref;
  std::optional<std::string> source_template_kind;
  std::optional<double> connection_expires_in_minutes;
  std::optional<std::string> expires_at;
};
BOOST_DESCRIBE_STRUCT(StartSetup, (Where),
                      (session_id, source_template_ref, source_template_kind,
                       connection_expires_in_minutes, expires_at))

struct GetSetup : Where {
  std::string provider_lease_id;
  std::optional<bj::object> setup_metadata;
  std::optional<bool> include_connection_payload;
  std::optional<double> connection_expires_in_minutes;
};
BOOST_DESCRIBE_STRUCT(GetSetup, (Where),
                      (provider_lease_id, setup_metadata, include_connection_payload,
                       connection_expires_in_minutes))

// The public part of an access to the sandbox.
struct ConnectionSummary {
  std::string type;
  std::optional<std::string> username = {};
  bool host_redacted = true;
  bool port_redacted = true;
  std::optional<bool> command_redacted = {};
  std::optional<std::string> expires_at = {};
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(ConnectionSummary, (),
                      (type, username, host_redacted, port_redacted, command_redacted, expires_at,
                       metadata))

// The access itself, for the user who set it up.
struct ConnectionPayload {
  std::string type;
  std::optional<std::string> command = {};
  std::optional<std::string> token = {};
  std::optional<std::string> expires_at = {};
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(ConnectionPayload, (), (type, command, token, expires_at, metadata))

struct Setup {
  std::optional<std::string> provider_lease_id = {};
  // starting, waiting_for_user, capturing, promoted, cancelled, timed_out, failed or missing
  std::string status;
  std::optional<ConnectionSummary> connection_summary = {};
  std::optional<ConnectionPayload> connection_payload = {};
  std::optional<std::string> expires_at = {};
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(Setup, (),
                      (provider_lease_id, status, connection_summary, connection_payload,
                       expires_at, metadata))

struct CaptureTemplate : Where {
  std::string provider_lease_id;
  std::optional<bj::object> setup_metadata;
  std::optional<std::string> source_template_ref;
  std::optional<std::string> previous_template_ref;
  std::optional<std::string> template_label;
  std::optional<double> timeout_ms;
};
BOOST_DESCRIBE_STRUCT(CaptureTemplate, (Where),
                      (provider_lease_id, setup_metadata, source_template_ref,
                       previous_template_ref, template_label, timeout_ms))

struct Template {
  std::string template_ref;
  std::string template_kind;  // snapshot, image, provider_template or another kind
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(Template, (), (template_ref, template_kind, metadata))

struct CancelSetup : Where {
  std::string provider_lease_id;
  std::optional<bj::object> setup_metadata;
  std::optional<std::string> reason;
};
BOOST_DESCRIBE_STRUCT(CancelSetup, (Where), (provider_lease_id, setup_metadata, reason))

struct SetupEnded {
  std::string status;  // cancelled, timed_out, failed or missing
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(SetupEnded, (), (status, metadata))

struct DeleteTemplate : Where {
  std::string template_ref;
  std::optional<std::string> template_kind;
  std::optional<bj::object> metadata;
  std::optional<std::string> reason;
};
BOOST_DESCRIBE_STRUCT(DeleteTemplate, (Where), (template_ref, template_kind, metadata, reason))

struct TemplateDeleted {
  bool deleted = true;
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(TemplateDeleted, (), (deleted, metadata))

struct Health {
  std::string status = "ok";  // ok, degraded or error
  std::optional<std::string> message = {};
  std::optional<bj::object> details = {};
};
BOOST_DESCRIBE_STRUCT(Health, (), (status, message, details))

// The login of an agent's own program inside a sandbox, on a terminal. Its output is text.
struct OpenLogin {
  std::string host_route_id;
  std::string driver_key;
  std::string company_id;
  std::string environment_id;
  std::string provider_lease_id;
  std::string login_command_key;  // claude or codex
  std::string session_home;       // a folder for the files that the login writes
};
BOOST_DESCRIBE_STRUCT(OpenLogin, (),
                      (host_route_id, driver_key, company_id, environment_id, provider_lease_id,
                       login_command_key, session_home))

struct LoginOpened {
  std::string worker_session_id;
};
BOOST_DESCRIBE_STRUCT(LoginOpened, (), (worker_session_id))

struct TypeLogin {
  std::string worker_session_id;
  std::string data;
};
BOOST_DESCRIBE_STRUCT(TypeLogin, (), (worker_session_id, data))

struct StopLogin {
  std::string worker_session_id;
};
BOOST_DESCRIBE_STRUCT(StopLogin, (), (worker_session_id))

// Also for a login that was never opened, or whose open call was not answered in time.
struct CloseLogin {
  std::string host_route_id;
  std::optional<std::string> worker_session_id;
};
BOOST_DESCRIBE_STRUCT(CloseLogin, (), (host_route_id, worker_session_id))

struct LoginClosed {
  std::string host_route_id;
};
BOOST_DESCRIBE_STRUCT(LoginClosed, (), (host_route_id))

// One command inside a sandbox with bytes in both directions. Chunks are base64.
struct OpenChannel {
  std::string host_route_id;
  std::string driver_key;
  std::string company_id;
  std::string environment_id;
  std::string provider_lease_id;
  std::vector<std::string> command;
};
BOOST_DESCRIBE_STRUCT(OpenChannel, (),
                      (host_route_id, driver_key, company_id, environment_id, provider_lease_id,
                       command))

struct ChannelOpened {
  std::string host_route_id;
  std::string worker_session_id;
};
BOOST_DESCRIBE_STRUCT(ChannelOpened, (), (host_route_id, worker_session_id))

struct WriteChannel {
  std::string host_route_id;
  std::string worker_session_id;
  std::string data;
};
BOOST_DESCRIBE_STRUCT(WriteChannel, (), (host_route_id, worker_session_id, data))

struct StopChannel {
  std::string host_route_id;
  std::string worker_session_id;
};
BOOST_DESCRIBE_STRUCT(StopChannel, (), (host_route_id, worker_session_id))

struct CloseChannel {
  std::string host_route_id;
};
BOOST_DESCRIBE_STRUCT(CloseChannel, (), (host_route_id))

struct ChannelClosed {
  std::string host_route_id;
  std::optional<std::string> worker_session_id = {};
};
BOOST_DESCRIBE_STRUCT(ChannelClosed, (), (host_route_id, worker_session_id))

}  // namespace berth::sdk
