#pragma once

#include "core/access.hpp"
#include "core/rows/secret.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::SecretRecord> = "company_secrets";
template <>
inline constexpr std::string_view table_of<core::SecretVersion> = "company_secret_versions";
template <>
inline constexpr std::string_view table_of<core::SecretBinding> = "company_secret_bindings";
template <>
inline constexpr std::string_view table_of<core::SecretAccessEvent> = "secret_access_events";

// secret_name_taken or secret_key_taken when a unique index rejects the row.
Result<> insert_secret(Session& session, const core::SecretRecord& secret);
// Without deleted ones, ordered by (created_at, id) descending.
Result<Page<core::SecretRecord>> list_secrets(Session& session, const core::CompanyId& company,
                                              const PageRequest& page);
// secret_not_found also for deleted ones.
Result<Stored<core::SecretRecord>> find_secret(Session& session, const core::Reach& reach,
                                               const core::SecretId& id);
Result<> update_secret(Session& session, const Stored<core::SecretRecord>& secret);
// Removes the secret with its versions, bindings and access events.
Result<> delete_secret(Session& session, const core::SecretId& id);
// The secrets that were created for fields of this environment.
Result<std::vector<core::SecretId>> secrets_owned_by(Session& session,
                                                     const core::EnvironmentId& environment);
// Whether an unfinished lease or sandbox was created with this secret.
Result<bool> is_needed_for_teardown(Session& session, const core::SecretId& id);
// How many bindings refer to each of these secrets: (secret id, count), absent for none.
Result<std::map<std::string, std::int64_t>> binding_counts(Session& session,
                                                           const core::CompanyId& company);

// Makes this version current, and the former current one `previous`.
Result<> insert_version(Session& session, const core::SecretVersion& version);
Result<std::optional<core::SecretVersion>> find_version(Session& session, const core::SecretId& id,
                                                        std::int64_t number);
Result<std::vector<core::SecretVersion>> list_versions(Session& session, const core::SecretId& id);
// Up to `limit` versions not sealed with `key_id`, ordered by id, after `after` ("" for the first).
Result<std::vector<core::SecretVersion>> versions_not_sealed_with(Session& session,
                                                                  const std::string& key_id,
                                                                  const std::string& after,
                                                                  std::int64_t limit);
// Replaces the sealed text only if it is still sealed with `old_key_id`; false when another writer
// was faster.
Result<bool> reseal_version(Session& session, const core::SecretVersion& resealed,
                            const std::string& old_key_id);
// The distinct keys that sealed data still needs: secret values, run inputs, sealed settings.
Result<std::vector<std::string>> key_ids_in_use(Session& session);

// Which bindings of a target to replace: with `path_prefix` only those whose path starts with it,
// with `except_prefix` all others. An environment's `env.` bindings and its config bindings are
// replaced separately.
struct BindingScope {
  core::SecretTarget target_type;
  std::string target_id;
  std::string path_prefix;    // "" = any
  std::string except_prefix;  // "" = none
};
Result<> replace_bindings(Session& session, const BindingScope& scope,
                          const std::vector<core::SecretBinding>& bindings);
Result<std::vector<core::SecretBinding>> bindings_of_secret(Session& session,
                                                            const core::SecretId& id);
Result<std::vector<core::SecretBinding>> bindings_of_target(Session& session,
                                                            core::SecretTarget type,
                                                            const std::string& target_id);

Result<> insert_access_event(Session& session, const core::SecretAccessEvent& event);
// Ordered by (created_at, id) descending.
Result<Page<core::SecretAccessEvent>> list_access_events(Session& session, const core::SecretId& id,
                                                         const PageRequest& page);

}  // namespace berth::store
