// Reading secret values: permissions, and the record of every attempt.
#include "base/log.hpp"
#include "engine/journal.hpp"
#include "engine/secrets/secret_seals.hpp"
#include "engine/secrets/secrets.hpp"
#include "store/secrets.hpp"

#include <charconv>

namespace berth::engine {
namespace {

core::SecretAccessEvent event_of(const Services& services, const core::Call& call,
                                 const SecretRead& read) {
  const Time now = services.clock.now();
  return {.id = core::EventId::make(services.random, now),
          .company_id = read.company_id,
          .secret_id = read.secret_id,
          .secret_version = std::nullopt,
          .provider = core::SecretProvider::local_encrypted,
          .actor_type = call.who.actor_type(),
          .actor_id = call.who.actor_id(),
          .consumer_type = read.asked_by
                               ? core::SecretConsumer::agent_api
                               : *parse_name<core::SecretConsumer>(name_of(read.target_type)),
          .consumer_id = read.asked_by ? read.asked_by->str() : read.target_id,
          .config_path = read.config_path,
          .heartbeat_run_id = std::nullopt,
          .outcome = core::SecretAccessOutcome::success,
          .error_code = std::nullopt,
          .created_at = now};
}

Result<core::SecretBinding> find_binding(store::Session& session, const SecretRead& read) {
  BERTH_TRY(const auto bindings, store::bindings_of_secret(session, read.secret_id));
  const auto found = std::ranges::find_if(bindings, [&](const core::SecretBinding& binding) {
    return binding.company_id == read.company_id && binding.target_type == read.target_type &&
           binding.target_id == read.target_id && binding.config_path == read.config_path;
  });
  if (found != bindings.end()) return *found;
  return fail(Errc::binding_missing,
              "Secret is not bound to " + std::string{name_of(read.target_type)} + ":" +
                  read.target_id + " at " + read.config_path,
              "save the object that names the secret again, so that the binding is written");
}

Result<core::SecretVersion> find_readable(store::Session& session, const core::SecretRecord& secret,
                                          const std::string& selector) {
  std::int64_t number = secret.latest_version;
  if (selector != "latest") {
    std::from_chars(selector.data(), selector.data() + selector.size(), number);
  }
  BERTH_TRY(auto version, store::find_version(session, secret.id, number));
  const std::string name = "version " + std::to_string(number) + " of secret " + secret.name;
  if (!version) {
    return fail(Errc::secret_version_missing, name + " does not exist", "name another version");
  }
  const bool readable = version->status == core::SecretVersionStatus::current ||
                        version->status == core::SecretVersionStatus::previous;
  if (!readable || version->revoked_at) {
    return fail(Errc::secret_version_inactive,
                name + " is " + std::string{name_of(version->status)},
                "rotate the secret, or name another version");
  }
  return *std::move(version);
}

}  // namespace

Task<ResolvedSecret> Secrets::resolve(core::Call call, SecretRead read) {
  co_return co_await resolve_version(std::move(call), std::move(read), std::nullopt);
}

Task<ResolvedSecret> Secrets::resolve_unbound(core::Call call, SecretRead read,
                                              std::string version) {
  co_return co_await resolve_version(std::move(call), std::move(read), std::move(version));
}

Task<ResolvedSecret> Secrets::resolve_version(core::Call call, SecretRead read,
                                              std::optional<std::string> unbound) {
  core::SecretAccessEvent event = event_of(services_, call, read);
  const auto work = [&](store::Session& s) -> Result<core::SecretVersion> {
    BERTH_TRY(event.heartbeat_run_id, vouched_run(s, call, read.company_id));
    BERTH_TRY(auto row, store::find_secret(s, core::Reach::only(read.company_id), read.secret_id));
    if (row.value.status != core::SecretStatus::active) {
      return fail(Errc::secret_inactive, "Secret " + row.value.name + " is not active",
                  "enable it: berth secret enable " + row.value.name);
    }
    std::string selector = unbound.value_or("");
    if (!unbound) {
      BERTH_TRY(const core::SecretBinding binding, find_binding(s, read));
      selector = binding.version_selector;
    }
    BERTH_TRY(auto version, find_readable(s, row.value, selector));
    row.value.last_resolved_at = services_.clock.now();
    BERTH_DO(store::update_secret(s, row));
    event.secret_version = version.number;
    BERTH_DO(store::insert_access_event(s, event));
    return version;
  };
  Result<core::SecretVersion> version = co_await services_.store.write(work);
  Result<Secret> value = version ? unseal_version(services_, *version)
                                 : Result<Secret>{std::unexpected(version.error())};
  if (value) co_return ResolvedSecret{*std::move(value), version->number};

  event.id = core::EventId::make(services_.random, event.created_at);
  event.outcome = core::SecretAccessOutcome::failure;
  event.error_code = name_of(value.error().code);
  const Result<> noted = co_await services_.store.write([&](store::Session& s) -> Result<> {
    // An event belongs to a secret, so an attempt on a missing secret has no row to refer to.
    if (!store::find_secret(s, core::Reach::only(read.company_id), read.secret_id)) return {};
    BERTH_TRY(event.heartbeat_run_id, vouched_run(s, call, read.company_id));
    return store::insert_access_event(s, event);
  });
  if (!noted) log::warn("secret.access_event_lost", {{"secret", read.secret_id}});
  co_return std::unexpected(std::move(value).error());
}

}  // namespace berth::engine
