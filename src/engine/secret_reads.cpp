// Reading values and changing the key that seals them: the two things that open the vault.
#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "engine/journal.hpp"
#include "engine/once.hpp"
#include "engine/secrets.hpp"
#include "engine/vault_key.hpp"
#include "store/idempotency.hpp"
#include "store/secrets.hpp"

#include <charconv>

namespace berth::engine {
namespace {

constexpr std::int64_t reseal_batch = 100;

std::string context_of(const core::SecretVersion& version) {
  return "secret:" + version.secret_id.str() + ":" + std::to_string(version.number);
}

// A value that is sealed with a key we do not have may have been resealed by another server: look
// at the file again.
Result<Secret> unseal(Means& means, const core::SecretVersion& version) {
  if (!means.vault.has_key(version.key_id)) BERTH_DO(means.vault.reload());
  return means.vault.unseal({version.key_id, version.material}, context_of(version));
}

core::SecretAccessEvent event_of(const Means& means, const core::Call& call,
                                 const SecretRead& read) {
  const Time now = means.clock.now();
  return {.id = core::EventId::make(means.random, now),
          .company_id = read.company_id,
          .secret_id = read.secret_id,
          .secret_version = std::nullopt,
          .provider = core::SecretProvider::local_encrypted,
          .actor_type = call.who.actor_type(),
          .actor_id = call.who.actor_id(),
          .consumer_type = *parse_name<core::SecretConsumer>(name_of(read.target_type)),
          .consumer_id = read.target_id,
          .config_path = read.config_path,
          .heartbeat_run_id = call.run_id,
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
  core::SecretAccessEvent event = event_of(means_, call, read);
  const auto work = [&](store::Session& s) -> Result<core::SecretVersion> {
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
    row.value.last_resolved_at = means_.clock.now();
    BERTH_DO(store::update_secret(s, row));
    event.secret_version = version.number;
    BERTH_DO(store::insert_access_event(s, event));
    return version;
  };
  Result<core::SecretVersion> version = co_await means_.store.write(work);
  Result<Secret> value =
      version ? unseal(means_, *version) : Result<Secret>{std::unexpected(version.error())};
  if (value) co_return ResolvedSecret{*std::move(value), version->number};

  event.id = core::EventId::make(means_.random, event.created_at);
  event.outcome = core::SecretAccessOutcome::failure;
  event.error_code = name_of(value.error().code);
  const Result<> noted = co_await means_.store.write([&](store::Session& s) -> Result<> {
    // An event belongs to a secret; an attempt on one that is not there has no row to hang on.
    if (!store::find_secret(s, core::Reach::only(read.company_id), read.secret_id)) return {};
    return store::insert_access_event(s, event);
  });
  if (!noted) log::warn("secret.access_event_lost", {{"secret", read.secret_id}});
  co_return std::unexpected(std::move(value).error());
}

Task<std::int64_t> Secrets::reseal_all() {
  std::int64_t resealed = 0;
  std::string after;
  while (true) {
    const std::string current = means_.vault.current_key_id();
    BERTH_CO_TRY(const auto batch, co_await means_.store.read([&](store::Session& s) {
      return store::versions_not_sealed_with(s, current, after, reseal_batch);
    }));
    if (batch.empty()) co_return resealed;
    after = batch.back().id.str();

    std::vector<std::pair<core::SecretVersion, std::string>> changed;
    for (const core::SecretVersion& version : batch) {
      BERTH_CO_TRY(const Secret value, unseal(means_, version));
      core::SecretVersion next = version;
      vault::Sealed sealed = means_.vault.seal(value.reveal(), context_of(version));
      next.key_id = std::move(sealed.key_id);
      next.material = std::move(sealed.text);
      next.fingerprint = means_.vault.fingerprint(value.reveal());
      changed.emplace_back(std::move(next), version.key_id);
    }
    const auto save = [&](store::Session& s) -> Result<std::int64_t> {
      std::int64_t count = 0;
      for (const auto& [next, old_key] : changed) {
        BERTH_TRY(const bool done, store::reseal_version(s, next, old_key));
        count += done ? 1 : 0;
      }
      return count;
    };
    BERTH_CO_TRY(const std::int64_t count, co_await means_.store.write(save));
    resealed += count;
    fault_point("rekey.batch");
  }
}

Task<Rekeyed> Secrets::rekey(core::Call call) {
  if (call.once) {
    BERTH_CO_TRY(const std::optional<Secret> kept,
                 co_await means_.store.read(
                     [&](store::Session& s) { return once_detail::find(s, means_, call); }));
    if (kept) co_return once_detail::from_text<Rekeyed>(kept->reveal());
  }
  // The new key is durable, beside all former ones, before anything is sealed with it.
  BERTH_CO_DO(means_.vault.begin_rotation());
  BERTH_CO_DO(co_await announce_vault_key(means_));
  fault_point("rekey.begun");
  BERTH_CO_TRY(const std::int64_t resealed, co_await reseal_all());
  fault_point("rekey.resealed");
  const Rekeyed done{means_.vault.current_key_id(), resealed};
  const auto last_look = [&](store::Session& s) -> Result<> {
    BERTH_TRY(const auto in_use, store::key_ids_in_use(s));
    for (const std::string& key_id : in_use) {
      if (key_id == done.key_id) continue;
      return fail(Errc::conflict, "a value was sealed with key " + key_id + " during the rotation",
                  "run the rotation again");
    }
    // Kept answers are sealed with the key that goes now; a request repeated after a rotation is a
    // new one.
    BERTH_DO(
        store::forget_answers(s, means_.clock.now() + 1, std::numeric_limits<std::int32_t>::max()));
    return call.once ? once_detail::keep(s, means_, call, encode_text(done)) : Result<>{};
  };
  BERTH_CO_DO(co_await means_.store.write(last_look));
  BERTH_CO_DO(means_.vault.finish_rotation());
  log::info("vault.rekeyed",
            {{"key", done.key_id}, {"versions", resealed}, {"by", call.who.actor_id()}});
  co_return done;
}

}  // namespace berth::engine
