#include "contract/store_fixture.hpp"

#include "base/assert.hpp"
#include "store/companies.hpp"
#include "store/nodes.hpp"
#include "store/places/environments.hpp"
#include "store/runs.hpp"
#include "store/secrets.hpp"

#include <libpq-fe.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace berth::store {

std::string postgres_url() {
  const char* url =
      std::getenv("BERTH_TEST_PG");  // NOLINT(concurrency-mt-unsafe): nobody writes it
  return url == nullptr ? "" : url;
}

std::string run_on_postgres(const std::string& url, const std::string& sql) {
  PGconn* connection = PQconnectdb(url.c_str());
  PQsetNoticeReceiver(connection, [](void*, const PGresult*) {}, nullptr);
  PGresult* result = PQexec(connection, sql.c_str());
  EXPECT_TRUE(PQresultStatus(result) == PGRES_COMMAND_OK ||
              PQresultStatus(result) == PGRES_TUPLES_OK)
      << sql << ": " << PQerrorMessage(connection);
  std::string first = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
  PQclear(result);
  PQfinish(connection);
  return first;
}

TemporarySchema::TemporarySchema() {
  static int made = 0;
  name_ = "berth_" + std::to_string(::getpid()) + "_" + std::to_string(++made);
  const std::string base = postgres_url();
  url_ = base + (base.contains('?') ? "&" : "?") + "application_name=" + name_ +
         "&options=-csearch_path%3D" + name_;
  run_on_postgres(base, "drop schema if exists " + name_ + " cascade; create schema " + name_);
}

TemporarySchema::~TemporarySchema() {
  run_on_postgres(postgres_url(), "drop schema " + name_ + " cascade");
}

Place::Place(EngineKind engine) {
  if (engine == EngineKind::sqlite) {
    folder_ = std::make_unique<TemporaryFolder>();
  } else {
    schema_ = std::make_unique<TemporarySchema>();
  }
}

std::string Place::url() const {
  return folder_ ? "sqlite:" + folder_->path() + "/berth.db" : schema_->url();
}

void StoreContract::SetUp() {
  if (GetParam() == EngineKind::postgres && postgres_url().empty()) GTEST_SKIP() << postgres_advice;
  place_ = std::make_unique<Place>(GetParam());
  auto opened = open_database({.url = place_->url()});
  ASSERT_TRUE(opened) << opened.error().message;
  database_ = *std::move(opened);
}

std::int64_t StoreContract::number(const std::string& sql) {
  const auto rows = read([&](Session& s) { return s.run(sql, {}); });
  EXPECT_TRUE(rows) << rows.error().message;
  return rows ? std::get<std::int64_t>(rows->rows.at(0).at(0)) : -1;
}

core::Company StoreContract::company(const std::string& name) {
  return {.id = fresh<core::CompanyId>(),
          .name = name,
          .description = {},
          .default_environment_id = {},
          .created_at = now(),
          .updated_at = now()};
}

core::Agent StoreContract::agent(const core::CompanyId& company) {
  return {.id = fresh<core::AgentId>(),
          .company_id = company,
          .name = "Ada",
          .role = "general",
          .title = {},
          .adapter_config = {{"command", "true"}},
          .runtime_config = {},
          .default_environment_id = {},
          .metadata = {},
          .last_heartbeat_at = {},
          .created_at = now(),
          .updated_at = now()};
}

core::Environment StoreContract::environment(const core::CompanyId& company,
                                             const std::string& name) {
  return {.id = fresh<core::EnvironmentId>(),
          .company_id = company,
          .name = name,
          .description = "a place",
          .driver = core::DriverKind::ssh,
          .config = {{"host", "h\u00e9"}, {"port", 22}},
          .env_vars = {},
          .metadata = {},
          .created_at = now(),
          .updated_at = now()};
}

core::Environment StoreContract::local_environment(const core::CompanyId& company) {
  core::Environment local = environment(company, std::string{core::local_environment_name});
  local.driver = core::DriverKind::local;
  return local;
}

core::LeaseRecord StoreContract::lease(const core::Environment& environment,
                                       core::LeaseState status) {
  return {core::Lease{.id = fresh<core::LeaseId>(),
                      .company_id = environment.company_id,
                      .environment_id = environment.id,
                      .execution_workspace_id = {},
                      .issue_id = {},
                      .heartbeat_run_id = {},
                      .status = status,
                      .provider = "fake",
                      .provider_lease_id = {},
                      .acquired_at = now(),
                      .last_used_at = now(),
                      .expires_at = {},
                      .released_at = {},
                      .failure_reason = {},
                      .cleanup_status = {},
                      .metadata = {},
                      .created_at = now(),
                      .updated_at = now()}};
}

core::Run StoreContract::run(const core::CompanyId& company) {
  return {.id = fresh<core::RunId>(),
          .company_id = company,
          .agent_id = {},
          .environment_id = {},
          .lease_id = {},
          .node_id = {},
          .trigger_detail = {},
          .command = {},
          .environment_choice = {},
          .phases = {},
          .error = {},
          .error_code = {},
          .exit_code = {},
          .signal = {},
          .usage_json = {},
          .result_json = {},
          .session_id_before = {},
          .session_id_after = {},
          .log_sha256 = {},
          .stdout_excerpt = {},
          .stderr_excerpt = {},
          .process_pid = {},
          .process_group_id = {},
          .process_started_at = {},
          .last_output_at = {},
          .retry_of_run_id = {},
          .context_snapshot = {},
          .cancel_requested_at = {},
          .started_at = {},
          .finished_at = {},
          .created_at = now(),
          .updated_at = now()};
}

core::Sandbox StoreContract::sandbox(const core::Environment& environment,
                                     core::SandboxState status) {
  return {.id = fresh<core::SandboxId>(),
          .company_id = environment.company_id,
          .environment_id = environment.id,
          .agent_id = {},
          .execution_workspace_id = {},
          .lease_id = {},
          .node_id = {},
          .provider = "fake",
          .plugin_id = {},
          .plugin_version = {},
          .config = {{"image", "debian"}},
          .provider_lease_id = {},
          .fingerprint = "print",
          .status = status,
          .metadata = {},
          .failure_reason = {},
          .next_attempt_at = {},
          .parked_at = {},
          .expires_at = {},
          .last_used_at = now(),
          .created_at = now(),
          .updated_at = now()};
}

core::Node StoreContract::node() {
  return {.id = fresh<core::NodeId>(),
          .name = "alpha",
          .url = "http://127.0.0.1:3100",
          .version = "1.2.3",
          .started_at = now(),
          .heartbeat_at = now(),
          .fenced_at = {}};
}

core::SecretRecord StoreContract::secret(const core::CompanyId& company, const std::string& name) {
  return {.id = fresh<core::SecretId>(),
          .company_id = company,
          .key = name,
          .name = name,
          .external_ref = {},
          .provider_metadata = {},
          .description = {},
          .last_resolved_at = {},
          .last_rotated_at = {},
          .deleted_at = {},
          .created_by_agent_id = {},
          .created_by_user_id = {},
          .owned_by_environment_id = {},
          .created_at = now(),
          .updated_at = now()};
}

core::SecretVersion StoreContract::version(const core::SecretId& secret, std::int64_t number) {
  return {.id = fresh<core::SecretVersionId>(),
          .secret_id = secret,
          .number = number,
          .key_id = "key-1",
          .material = "sealed",
          .fingerprint = "print",
          .provider_version_ref = {},
          .revoked_at = {},
          .created_at = now()};
}

core::SecretBinding StoreContract::binding(const core::SecretRecord& secret,
                                           core::SecretTarget type, const std::string& target,
                                           const std::string& path) {
  return {.id = fresh<core::BindingId>(),
          .company_id = secret.company_id,
          .secret_id = secret.id,
          .target_type = type,
          .target_id = target,
          .config_path = path,
          .version_selector = "latest",
          .label = {},
          .projection_allowlist_key = {},
          .created_at = now(),
          .updated_at = now()};
}

core::SecretAccessEvent StoreContract::access_event(const core::SecretRecord& secret) {
  return {.id = fresh<core::EventId>(),
          .company_id = secret.company_id,
          .secret_id = secret.id,
          .secret_version = 1,
          .actor_id = "local-board",
          .consumer_id = "probe",
          .config_path = {},
          .heartbeat_run_id = {},
          .error_code = {},
          .created_at = now()};
}

core::Activity StoreContract::activity(const core::CompanyId& company, const std::string& entity) {
  return {.id = fresh<core::EventId>(),
          .company_id = company,
          .actor_id = "local-board",
          .action = "environment.created",
          .entity_type = "environment",
          .entity_id = entity,
          .agent_id = {},
          .run_id = {},
          .details = {{"name", "x"}},
          .created_at = now()};
}

core::Token StoreContract::token(std::optional<core::CompanyId> company) {
  return {.id = fresh<core::TokenId>(),
          .company_id = std::move(company),
          .agent_id = {},
          .role = core::Role::operator_,
          .name = "ci",
          .hint = "bth_abc",
          .expires_at = {},
          .last_used_at = {},
          .revoked_at = {},
          .created_at = now()};
}

core::Company StoreContract::given_company(const std::string& name) {
  core::Company made = company(name);
  EXPECT_WORKS(write([&](Session& s) { return insert_company(s, made); }));
  return made;
}

core::Environment StoreContract::given_environment(const core::CompanyId& company,
                                                   const std::string& name) {
  core::Environment made = environment(company, name);
  EXPECT_WORKS(write([&](Session& s) { return insert_environment(s, made); }));
  return made;
}

core::Run StoreContract::given_run(const core::CompanyId& company) {
  clock_.advance(std::chrono::milliseconds{1});
  core::Run made = run(company);
  EXPECT_WORKS(write([&](Session& s) { return insert_run(s, made); }));
  return made;
}

core::Node StoreContract::given_node() {
  core::Node made = node();
  EXPECT_WORKS(write([&](Session& s) { return register_node(s, made); }));
  return made;
}

core::SecretRecord StoreContract::given_secret(const core::CompanyId& company,
                                               const std::string& name) {
  core::SecretRecord made = secret(company, name);
  EXPECT_WORKS(write([&](Session& s) { return insert_secret(s, made); }));
  return made;
}

}  // namespace berth::store
