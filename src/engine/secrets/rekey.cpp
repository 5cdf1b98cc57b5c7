// Master key rotation: everything sealed is resealed, in steps that a crash may interrupt anywhere.
#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/runs/run_inputs.hpp"
#include "engine/secrets/sealed_settings.hpp"
#include "engine/secrets/secret_seals.hpp"
#include "engine/secrets/secrets.hpp"
#include "engine/secrets/vault_key.hpp"
#include "store/secrets.hpp"

namespace berth::engine {
namespace {

constexpr std::int64_t reseal_batch = 100;

// A table of sealed rows: how to find those sealed with another key, and how to write one back
// unless another writer was faster.
template <class Row>
struct SealedTable {
  Result<std::vector<Row>> (*find)(store::Session&, const std::string& key_id,
                                   const std::string& after, std::int64_t limit);
  std::string (*id)(const Row&);
  Result<Row> (*reseal)(Services&, const Row&);
  Result<bool> (*save)(store::Session&, const Row& resealed, const std::string& old_key_id);
};

template <class Row>
Task<std::int64_t> reseal_table(Services& services, SealedTable<Row> table) {
  std::int64_t resealed = 0;
  std::string after;
  while (true) {
    const std::string current = services.vault.current_key_id();
    BERTH_CO_TRY(const auto batch, co_await services.store.read([&](store::Session& s) {
      return table.find(s, current, after, reseal_batch);
    }));
    if (batch.empty()) co_return resealed;
    after = table.id(batch.back());

    std::vector<Row> changed;
    for (const Row& row : batch) {
      BERTH_CO_TRY(Row next, table.reseal(services, row));
      changed.push_back(std::move(next));
    }
    const auto save = [&](store::Session& s) -> Result<std::int64_t> {
      std::int64_t count = 0;
      for (std::size_t i = 0; i < batch.size(); ++i) {
        BERTH_TRY(const bool done, table.save(s, changed[i], batch[i].key_id));
        count += done ? 1 : 0;
      }
      return count;
    };
    BERTH_CO_TRY(const std::int64_t count, co_await services.store.write(save));
    resealed += count;
    fault_point("rekey.batch");
  }
}

}  // namespace

Task<std::int64_t> Secrets::reseal_all() {
  const SealedTable<core::SecretVersion> versions{
      .find = store::versions_not_sealed_with,
      .id = [](const core::SecretVersion& version) { return version.id.str(); },
      .reseal = resealed_version,
      .save = store::reseal_version};
  const SealedTable<store::SealedInput> inputs{
      .find = store::inputs_not_sealed_with,
      .id = [](const store::SealedInput& input) { return input.run_id.str(); },
      .reseal = reseal_run_input,
      .save = store::reseal_run_input};
  BERTH_CO_TRY(const std::int64_t resealed, co_await reseal_table(services_, versions));
  BERTH_CO_DO(co_await reseal_table(services_, inputs));
  BERTH_CO_DO(co_await reseal_settings(services_));
  co_return resealed;
}

Task<Rekeyed> Secrets::rekey(core::Call call) {
  if (call.once) {
    BERTH_CO_TRY(const std::optional<Secret> kept,
                 co_await services_.store.read([&](store::Session& s) {
                   return idempotent_write_detail::find(s, services_, call);
                 }));
    if (kept) co_return idempotent_write_detail::from_text<Rekeyed>(kept->reveal());
  }
  // The new key is durable, beside all former ones, before anything is sealed with it.
  BERTH_CO_DO(services_.vault.begin_rotation());
  BERTH_CO_DO(co_await announce_vault_key(services_));
  fault_point("rekey.begun");
  BERTH_CO_TRY(const std::int64_t resealed, co_await reseal_all());
  fault_point("rekey.resealed");
  const Rekeyed done{services_.vault.current_key_id(), resealed};
  const auto last_look = [&](store::Session& s) -> Result<> {
    BERTH_TRY(const auto in_use, store::key_ids_in_use(s));
    for (const std::string& key_id : in_use) {
      if (key_id == done.key_id) continue;
      return fail(Errc::conflict, "a value was sealed with key " + key_id + " during the rotation",
                  "run the rotation again");
    }
    // Stored responses are sealed with the key that is now dropped; a request repeated after a
    // rotation counts as new.
    BERTH_DO(store::forget_answers(s, services_.clock.now() + 1,
                                   std::numeric_limits<std::int32_t>::max()));
    return call.once ? idempotent_write_detail::keep(s, services_, call, encode_text(done))
                     : Result<>{};
  };
  BERTH_CO_DO(co_await services_.store.write(last_look));
  BERTH_CO_DO(services_.vault.finish_rotation());
  log::info("vault.rekeyed",
            {{"key", done.key_id}, {"versions", resealed}, {"by", call.who.actor_id()}});
  co_return done;
}

}  // namespace berth::engine
