#include "engine/secrets/sealed_settings.hpp"

#include "engine/secrets/vault_key.hpp"
#include "store/settings.hpp"

namespace berth::engine {
namespace {

std::string context_of(const std::string& name) {
  return "setting:" + name;
}

store::SealedSetting seal(Means& means, const std::string& name, const Secret& value) {
  vault::Sealed sealed = means.vault.seal(value.reveal(), context_of(name));
  return {.key_id = std::move(sealed.key_id), .material = std::move(sealed.text)};
}

// Another server may have rotated the keys since this one read them.
Result<Secret> unseal(Means& means, const std::string& name, const store::SealedSetting& setting) {
  if (!means.vault.has_key(setting.key_id)) BERTH_DO(means.vault.reload());
  return means.vault.unseal({setting.key_id, setting.material}, context_of(name));
}

Secret random_secret(Random& random, std::size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  random.fill(raw);
  Secret value{std::string_view{reinterpret_cast<const char*>(raw.data()), raw.size()}};
  ::explicit_bzero(raw.data(), raw.size());
  return value;
}

}  // namespace

Task<Secret> ensure_sealed_random(Means& means, std::string name, std::size_t bytes) {
  const auto find_or_make = [&](store::Session& s) -> Result<store::SealedSetting> {
    BERTH_TRY(const auto found, store::find_sealed_setting(s, name));
    if (found) return found->value;
    BERTH_DO(expect_vault_key(s, means));
    store::SealedSetting made = seal(means, name, random_secret(means.random, bytes));
    BERTH_DO(store::save_sealed_setting(s, name, made, 0, means.clock.now()));
    return made;
  };
  Result<store::SealedSetting> setting = co_await means.store.write(find_or_make);
  // Another server was faster: then the second look finds what it made.
  if (!setting && setting.error().code == Errc::conflict) {
    setting = co_await means.store.write(find_or_make);
  }
  if (!setting) co_return std::unexpected(std::move(setting).error());
  co_return unseal(means, name, *setting);
}

Task<> reseal_settings(Means& means) {
  // They are few, and one transaction keeps them together.
  co_return co_await means.store.write([&](store::Session& s) -> Result<> {
    BERTH_TRY(const auto settings, store::list_sealed_settings(s));
    for (const auto& [name, setting] : settings) {
      if (setting.value.key_id == means.vault.current_key_id()) continue;
      BERTH_TRY(const Secret value, unseal(means, name, setting.value));
      BERTH_DO(store::save_sealed_setting(s, name, seal(means, name, value), setting.version,
                                          means.clock.now()));
    }
    return {};
  });
}

}  // namespace berth::engine
