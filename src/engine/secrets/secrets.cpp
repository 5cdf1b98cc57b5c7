#include "engine/secrets/secrets.hpp"

#include "engine/environments/checks.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/listing.hpp"
#include "engine/secrets/secret_seals.hpp"
#include "engine/secrets/vault_key.hpp"
#include "store/agents.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"
#include "store/secrets.hpp"

namespace berth::engine {
namespace {

constexpr std::size_t value_bytes_max = 64 * 1024;

Result<> check_value(const Secret& value) {
  if (!value.empty() && value.reveal().size() <= value_bytes_max) return {};
  const std::string what = value.empty() ? "must not be empty" : "is longer than 64 KiB";
  return std::unexpected(Error{Errc::validation_failed,
                               "/value " + what,
                               "send a value of 1 byte to 64 KiB",
                               {{"/value", what}}});
}

Result<> check_source(const CreateSecret& wanted) {
  const auto wrong = [](std::string_view at, std::string message) {
    return std::unexpected(Error{Errc::validation_failed,
                                 message,
                                 "see the OpenAPI document",
                                 {{std::string{at}, message}}});
  };
  const bool external = wanted.managed_mode == core::SecretManagedMode::external_reference;
  if (!external && !wanted.value) return wrong("/value", "Managed secrets require value");
  if (!external && wanted.external_ref) {
    return wrong("/externalRef", "Managed secrets cannot set externalRef");
  }
  if (external && !wanted.external_ref) {
    return wrong("/externalRef", "External reference secrets require externalRef");
  }
  const auto provider = wanted.provider.value_or(core::SecretProvider::local_encrypted);
  if (external || provider != core::SecretProvider::local_encrypted) {
    return fail(Errc::unprocessable,
                "secret provider " + std::string{name_of(provider)} +
                    " is not available for this kind of secret on this server",
                "use provider local_encrypted and send the value");
  }
  return check_value(*wanted.value);
}

core::SecretVersion sealed_version(Services& services, const core::SecretId& id,
                                   std::int64_t number, const Secret& value) {
  const Time now = services.clock.now();
  vault::Sealed sealed = services.vault.seal(value.reveal(), seal_context(id, number));
  return {.id = core::SecretVersionId::make(services.random, now),
          .secret_id = id,
          .number = number,
          .key_id = std::move(sealed.key_id),
          .material = std::move(sealed.text),
          .fingerprint = services.vault.fingerprint(value.reveal()),
          .status = core::SecretVersionStatus::current,
          .provider_version_ref = std::nullopt,
          .revoked_at = std::nullopt,
          .created_at = now};
}

Result<std::string> checked_key(const std::optional<std::string>& key, const std::string& name) {
  std::string normal = core::secret_key_of(key.value_or(name));
  if (!normal.empty()) return normal;
  return std::unexpected(Error{Errc::validation_failed,
                               "/key holds no letter or digit",
                               "give a key with letters or digits",
                               {{"/key", "holds no letter or digit"}}});
}

Result<BindingTarget> describe_target(store::Session& session, const core::SecretBinding& binding) {
  BindingTarget out{binding.target_type, binding.target_id, binding.target_id, std::nullopt};
  const core::Reach reach = core::Reach::only(binding.company_id);
  if (binding.target_type == core::SecretTarget::environment) {
    BERTH_TRY(const auto id, core::EnvironmentId::parse(binding.target_id));
    if (const auto found = store::find_environment(session, reach, id)) {
      out.label = found->value.name;
      out.status = name_of(found->value.status);
    }
  } else if (binding.target_type == core::SecretTarget::agent) {
    BERTH_TRY(const auto id, core::AgentId::parse(binding.target_id));
    if (const auto found = store::find_agent(session, reach, id)) {
      out.label = found->value.name;
      out.status = name_of(found->value.status);
    }
  }
  return out;
}

}  // namespace

Result<core::SecretRecord> insert_sealed(store::Session& session, Services& services,
                                         const core::Call& call, const NewSecret& wanted,
                                         const Secret& value) {
  const Time now = services.clock.now();
  core::SecretRecord secret{
      .id = core::SecretId::make(services.random, now),
      .company_id = wanted.company_id,
      .scope = core::SecretScope::company,
      .key = wanted.key,
      .name = wanted.name,
      .provider = core::SecretProvider::local_encrypted,
      .status = core::SecretStatus::active,
      .managed_mode = core::SecretManagedMode::paperclip_managed,
      .external_ref = std::nullopt,
      .provider_metadata = wanted.provider_metadata,
      .latest_version = 1,
      .description = wanted.description,
      .last_resolved_at = std::nullopt,
      .last_rotated_at = now,
      .deleted_at = std::nullopt,
      .created_by_agent_id = call.who.agent_id,
      .created_by_user_id = call.who.agent_id ? std::nullopt : std::optional{call.who.actor_id()},
      .owned_by_environment_id = wanted.owned_by_environment_id,
      .created_at = now,
      .updated_at = now};
  BERTH_DO(expect_vault_key(session, services));
  BERTH_DO(store::insert_secret(session, secret));
  BERTH_DO(store::insert_version(session, sealed_version(services, secret.id, 1, value)));
  BERTH_DO(record(session, services, call,
                  {secret.company_id,
                   "secret.created",
                   "secret",
                   secret.id.str(),
                   {{"name", secret.name}, {"key", secret.key}}}));
  return secret;
}

Task<core::Listing<SecretInList>> Secrets::list(core::Call call, core::CompanyId company,
                                                core::PageRequest page) {
  co_return co_await services_.store.read(
      [&](store::Session& s) -> Result<core::Listing<SecretInList>> {
        BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
        BERTH_TRY(auto rows, store::list_secrets(s, company, page));
        BERTH_TRY(const auto counts, store::binding_counts(s, company));
        return to_listing(std::move(rows), [&](core::SecretRecord secret) {
          const auto count = counts.find(secret.id.str());
          return SecretInList{std::move(secret), count != counts.end() ? count->second : 0};
        });
      });
}

Task<core::Listing<SecretInCatalog>> Secrets::catalog(core::Call call, core::CompanyId company,
                                                      core::PageRequest page) {
  co_return co_await services_.store.read(
      [&](store::Session& s) -> Result<core::Listing<SecretInCatalog>> {
        BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
        BERTH_TRY(auto rows, store::list_secrets(s, company, page));
        return to_listing(std::move(rows), [](core::SecretRecord secret) {
          return SecretInCatalog{secret.id, secret.name, secret.key, secret.status};
        });
      });
}

Task<core::SecretRecord> Secrets::get(core::Call call, core::SecretId id) {
  BERTH_CO_TRY(auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_secret(s, core::Reach::of(call.who), id);
  }));
  co_return std::move(row.value);
}

Task<core::SecretRecord> Secrets::create(core::Call call, core::CompanyId company,
                                         CreateSecret wanted) {
  BERTH_CO_TRY(wanted.name, checked_name(wanted.name, "/name"));
  BERTH_CO_DO(check_source(wanted));
  BERTH_CO_TRY(const std::string key, checked_key(wanted.key, wanted.name));
  const auto work = [&](store::Session& s) -> Result<core::SecretRecord> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    const NewSecret made{
        company, wanted.name, key, wanted.description, wanted.provider_metadata, std::nullopt};
    return insert_sealed(s, services_, call, made, *wanted.value);
  };
  BERTH_CO_TRY(auto secret, co_await idempotent_write(services_, call, work));
  services_.feed.changed(company);
  co_return secret;
}

Task<core::SecretRecord> Secrets::rotate(core::Call call, core::SecretId id, RotateSecret wanted) {
  BERTH_CO_DO(check_value(wanted.value));
  const auto work = [&](store::Session& s) -> Result<core::SecretRecord> {
    BERTH_TRY(auto row, store::find_secret(s, core::Reach::of(call.who), id));
    core::SecretRecord& secret = row.value;
    if (secret.status != core::SecretStatus::active) {
      return fail(Errc::unprocessable, "Cannot rotate a non-active secret: " + secret.name,
                  "enable it first: PATCH its status to active");
    }
    const auto expected = wanted.expected_latest_version;
    if (expected && *expected != secret.latest_version) {
      return fail(Errc::secret_version_stale,
                  "The secret version is stale. Reload and confirm the rotation again.",
                  "the latest version is " + std::to_string(secret.latest_version));
    }
    ++secret.latest_version;
    secret.last_rotated_at = services_.clock.now();
    secret.updated_at = *secret.last_rotated_at;
    BERTH_DO(expect_vault_key(s, services_));
    BERTH_DO(store::insert_version(
        s, sealed_version(services_, secret.id, secret.latest_version, wanted.value)));
    BERTH_DO(store::update_secret(s, row));
    BERTH_DO(record(s, services_, call,
                    {secret.company_id,
                     "secret.rotated",
                     "secret",
                     secret.id.str(),
                     {{"name", secret.name}, {"version", secret.latest_version}}}));
    return secret;
  };
  BERTH_CO_TRY(auto secret, co_await idempotent_write(services_, call, work));
  services_.feed.changed(secret.company_id);
  co_return secret;
}

Task<core::SecretRecord> Secrets::update(core::Call call, core::SecretId id, UpdateSecret change) {
  BERTH_CO_DO(not_null(change.name, "/name"));
  BERTH_CO_DO(not_null(change.key, "/key"));
  BERTH_CO_DO(not_null(change.status, "/status"));
  if (change.status.value == core::SecretStatus::deleted) {
    co_return fail(Errc::unprocessable,
                   "Managed secrets must be deleted through DELETE /secrets/:id",
                   "send DELETE /api/secrets/" + id.str());
  }
  if (change.name.value) {
    BERTH_CO_TRY(change.name.value, checked_name(*change.name.value, "/name"));
  }
  if (change.key.value) {
    BERTH_CO_TRY(change.key.value, checked_key(change.key.value, ""));
  }
  const auto work = [&](store::Session& s) -> Result<core::SecretRecord> {
    BERTH_TRY(auto row, store::find_secret(s, core::Reach::of(call.who), id));
    core::SecretRecord& secret = row.value;
    secret.name = change.name.or_else(secret.name);
    secret.key = change.key.or_else(secret.key);
    secret.status = change.status.or_else(secret.status);
    secret.description = change.description.or_keep(secret.description);
    secret.provider_metadata = change.provider_metadata.or_keep(secret.provider_metadata);
    secret.updated_at = services_.clock.now();
    BERTH_DO(store::update_secret(s, row));
    BERTH_DO(record(
        s, services_, call,
        {secret.company_id, "secret.updated", "secret", secret.id.str(), changed_fields(change)}));
    return secret;
  };
  BERTH_CO_TRY(auto secret, co_await services_.store.write(work));
  services_.feed.changed(secret.company_id);
  co_return secret;
}

Task<Acknowledged> Secrets::remove(core::Call call, core::SecretId id) {
  const auto work = [&](store::Session& s) -> Result<core::SecretRecord> {
    BERTH_TRY(auto row, store::find_secret(s, core::Reach::of(call.who), id));
    BERTH_DO(store::delete_secret(s, id));
    BERTH_DO(record(
        s, services_, call,
        {row.value.company_id, "secret.deleted", "secret", id.str(), {{"name", row.value.name}}}));
    return std::move(row.value);
  };
  BERTH_CO_TRY(const auto secret, co_await services_.store.write(work));
  services_.feed.changed(secret.company_id);
  co_return Acknowledged{};
}

Task<SecretUsage> Secrets::usage(core::Call call, core::SecretId id) {
  co_return co_await services_.store.read([&](store::Session& s) -> Result<SecretUsage> {
    BERTH_DO(store::find_secret(s, core::Reach::of(call.who), id));
    BERTH_TRY(const auto bindings, store::bindings_of_secret(s, id));
    SecretUsage out{id, {}};
    for (const core::SecretBinding& binding : bindings) {
      BERTH_TRY(BindingTarget target, describe_target(s, binding));
      out.bindings.push_back({binding, std::move(target)});
    }
    return out;
  });
}

Task<core::Listing<core::SecretAccessEvent>> Secrets::access_events(core::Call call,
                                                                    core::SecretId id,
                                                                    core::PageRequest page) {
  BERTH_CO_TRY(auto rows,
               co_await services_.store.read(
                   [&](store::Session& s) -> Result<core::Page<core::SecretAccessEvent>> {
                     BERTH_DO(store::find_secret(s, core::Reach::of(call.who), id));
                     return store::list_access_events(s, id, page);
                   }));
  co_return to_listing(std::move(rows));
}

Task<std::vector<SecretVersionView>> Secrets::versions(core::Call call, core::SecretId id) {
  co_return co_await services_.store.read(
      [&](store::Session& s) -> Result<std::vector<SecretVersionView>> {
        BERTH_DO(store::find_secret(s, core::Reach::of(call.who), id));
        BERTH_TRY(const auto rows, store::list_versions(s, id));
        std::vector<SecretVersionView> out;
        for (const core::SecretVersion& row : rows) {
          out.push_back(
              {row.id, row.number, row.status, row.key_id, row.revoked_at, row.created_at});
        }
        return out;
      });
}

}  // namespace berth::engine
