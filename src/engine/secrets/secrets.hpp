#pragma once

#include "core/call.hpp"
#include "core/page.hpp"
#include "core/rows/secret.hpp"
#include "engine/services.hpp"

namespace berth::engine {

struct CreateSecret {
  std::string name;
  std::optional<std::string> key;
  std::optional<core::SecretProvider> provider;
  std::optional<core::SecretManagedMode> managed_mode;
  std::optional<Secret> value;
  std::optional<std::string> external_ref;
  std::optional<bj::object> provider_metadata;
  std::optional<std::string> description;
};
BOOST_DESCRIBE_STRUCT(CreateSecret, (),
                      (name, key, provider, managed_mode, value, external_ref, provider_metadata,
                       description))

struct RotateSecret {
  Secret value;
  std::optional<std::int64_t> expected_latest_version;
};
BOOST_DESCRIBE_STRUCT(RotateSecret, (), (value, expected_latest_version))

struct UpdateSecret {
  Patch<std::string> name;
  Patch<std::string> key;
  Patch<core::SecretStatus> status;
  Patch<std::string> description;
  Patch<bj::object> provider_metadata;
};
BOOST_DESCRIBE_STRUCT(UpdateSecret, (), (name, key, status, description, provider_metadata))

struct SecretInList : core::SecretRecord {
  std::int64_t reference_count = 0;
};
BOOST_DESCRIBE_STRUCT(SecretInList, (core::SecretRecord), (reference_count))

struct SecretInCatalog {
  core::SecretId id;
  std::string name;
  std::string key;
  core::SecretStatus status;
};
BOOST_DESCRIBE_STRUCT(SecretInCatalog, (), (id, name, key, status))

// A version as users see it: when it was created and which key seals it, never its value.
struct SecretVersionView {
  core::SecretVersionId id;
  std::int64_t number = 0;
  core::SecretVersionStatus status = core::SecretVersionStatus::current;
  std::string key_id;
  std::optional<Time> revoked_at;
  Time created_at;
};
BOOST_DESCRIBE_STRUCT(SecretVersionView, (), (id, number, status, key_id, revoked_at, created_at))

struct BindingTarget {
  core::SecretTarget type = core::SecretTarget::environment;
  std::string id;
  std::string label;
  std::optional<std::string> status;
};
BOOST_DESCRIBE_STRUCT(BindingTarget, (), (type, id, label, status))

struct BindingUse : core::SecretBinding {
  BindingTarget target;
};
BOOST_DESCRIBE_STRUCT(BindingUse, (core::SecretBinding), (target))

struct SecretUsage {
  core::SecretId secret_id;
  std::vector<BindingUse> bindings;
};
BOOST_DESCRIBE_STRUCT(SecretUsage, (), (secret_id, bindings))

struct Acknowledged {
  bool ok = true;
};
BOOST_DESCRIBE_STRUCT(Acknowledged, (), (ok))

struct Rekeyed {
  std::string key_id;
  std::int64_t resealed_versions = 0;
};
BOOST_DESCRIBE_STRUCT(Rekeyed, (), (key_id, resealed_versions))

// A read of a value: its consumer, and the binding it uses.
struct SecretRead {
  core::CompanyId company_id;
  core::SecretId secret_id;
  core::SecretTarget target_type;
  std::string target_id;
  std::string config_path;
  // Set when an agent itself requests, through the API, what is bound to the target.
  std::optional<core::AgentId> asked_by = {};
};

struct ResolvedSecret {
  Secret value;
  std::int64_t version = 0;
};

class Secrets {
 public:
  explicit Secrets(Services& services) : services_(services) {}

  Task<core::Listing<SecretInList>> list(core::Call call, core::CompanyId company,
                                         core::PageRequest page);
  Task<core::Listing<SecretInCatalog>> catalog(core::Call call, core::CompanyId company,
                                               core::PageRequest page);
  Task<core::SecretRecord> get(core::Call call, core::SecretId id);
  Task<core::SecretRecord> create(core::Call call, core::CompanyId company, CreateSecret wanted);
  Task<core::SecretRecord> rotate(core::Call call, core::SecretId id, RotateSecret wanted);
  Task<core::SecretRecord> update(core::Call call, core::SecretId id, UpdateSecret change);
  Task<Acknowledged> remove(core::Call call, core::SecretId id);
  Task<SecretUsage> usage(core::Call call, core::SecretId id);
  Task<core::Listing<core::SecretAccessEvent>> access_events(core::Call call, core::SecretId id,
                                                             core::PageRequest page);
  Task<std::vector<SecretVersionView>> versions(core::Call call, core::SecretId id);

  // The value, if the secret is active and bound to this consumer at this path. Every attempt
  // leaves an access event; a read that cannot be recorded fails.
  Task<ResolvedSecret> resolve(core::Call call, SecretRead read);
  // The same without a binding, for an operator's unsaved draft.
  Task<ResolvedSecret> resolve_unbound(core::Call call, SecretRead read, std::string version);

  // Creates a new master key, reseals every value with it and drops the old one. Resumes after a
  // crash.
  Task<Rekeyed> rekey(core::Call call);

 private:
  Task<ResolvedSecret> resolve_version(core::Call call, SecretRead read,
                                       std::optional<std::string> unbound);
  Task<std::int64_t> reseal_all();

  Services& services_;
};

// Parts of a larger transaction, for use cases that also create secrets (an environment's private
// key).
struct NewSecret {
  core::CompanyId company_id;
  std::string name;
  std::string key;
  std::optional<std::string> description;
  std::optional<bj::object> provider_metadata;
  std::optional<core::EnvironmentId> owned_by_environment_id;
};
Result<core::SecretRecord> insert_sealed(store::Session& session, Services& services,
                                         const core::Call& call, const NewSecret& wanted,
                                         const Secret& value);

}  // namespace berth::engine
