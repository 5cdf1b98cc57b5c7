#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

namespace berth::core {

// A company's named, versioned value. The value itself is only in SecretVersion::material, sealed.
struct SecretRecord {
  SecretId id;
  CompanyId company_id;
  SecretScope scope = SecretScope::company;
  std::string key;
  std::string name;
  SecretProvider provider = SecretProvider::local_encrypted;
  SecretStatus status = SecretStatus::active;
  SecretManagedMode managed_mode = SecretManagedMode::paperclip_managed;
  std::optional<std::string> external_ref;
  std::optional<bj::object> provider_metadata;
  std::int64_t latest_version = 1;
  std::optional<std::string> description;
  std::optional<Time> last_resolved_at;
  std::optional<Time> last_rotated_at;
  std::optional<Time> deleted_at;
  std::optional<AgentId> created_by_agent_id;
  std::optional<std::string> created_by_user_id;
  std::optional<EnvironmentId>
      owned_by_environment_id;  // created for a field of this environment; deleted with it
  Time created_at;
  Time updated_at;
};
BOOST_DESCRIBE_STRUCT(SecretRecord, (),
                      (id, company_id, scope, key, name, provider, status, managed_mode,
                       external_ref, provider_metadata, latest_version, description,
                       last_resolved_at, last_rotated_at, deleted_at, created_by_agent_id,
                       created_by_user_id, owned_by_environment_id, created_at, updated_at))

// One value of a secret, sealed with the master key `key_id`. Never on the wire.
struct SecretVersion {
  SecretVersionId id;
  SecretId secret_id;
  std::int64_t number = 1;
  std::string key_id;
  std::string material;     // vault::Sealed as text
  std::string fingerprint;  // keyed: shows equality, but does not help guessing
  SecretVersionStatus status = SecretVersionStatus::current;
  std::optional<std::string> provider_version_ref;
  std::optional<Time> revoked_at;
  Time created_at;
};
BOOST_DESCRIBE_STRUCT(SecretVersion, (),
                      (id, secret_id, number, key_id, material, fingerprint, status,
                       provider_version_ref, revoked_at, created_at))

// Which target may read a secret, and under which config path. A read without a binding is refused.
struct SecretBinding {
  BindingId id;
  CompanyId company_id;
  SecretId secret_id;
  SecretTarget target_type = SecretTarget::environment;
  std::string target_id;
  std::string config_path;
  std::string version_selector;  // "latest" or a number
  bool required = true;
  std::optional<std::string> label;
  SecretProjection projection_class = SecretProjection::unclassified;
  std::optional<std::string> projection_allowlist_key;
  Time created_at;
  Time updated_at;
};
BOOST_DESCRIBE_STRUCT(SecretBinding, (),
                      (id, company_id, secret_id, target_type, target_id, config_path,
                       version_selector, required, label, projection_class,
                       projection_allowlist_key, created_at, updated_at))

// Records that a secret was read, or that a read was attempted. Never holds its value.
struct SecretAccessEvent {
  EventId id;
  CompanyId company_id;
  SecretId secret_id;
  std::optional<std::int64_t> secret_version;
  SecretProvider provider = SecretProvider::local_encrypted;
  ActorType actor_type = ActorType::system;
  std::string actor_id;
  SecretConsumer consumer_type = SecretConsumer::system;
  std::string consumer_id;
  std::optional<std::string> config_path;
  std::optional<RunId> heartbeat_run_id;
  SecretAccessOutcome outcome = SecretAccessOutcome::success;
  std::optional<std::string> error_code;
  Time created_at;
};
BOOST_DESCRIBE_STRUCT(SecretAccessEvent, (),
                      (id, company_id, secret_id, secret_version, provider, actor_type, actor_id,
                       consumer_type, consumer_id, config_path, heartbeat_run_id, outcome,
                       error_code, created_at))

// "DB password (prod)" becomes "db-password-prod": lower case, runs of other characters become one
// '-', at most 120 characters. Empty when the name has none of a-z, 0-9 and '_'.
std::string secret_key_of(std::string_view name);

}  // namespace berth::core
