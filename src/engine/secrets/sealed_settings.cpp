#include "engine/secrets/sealed_settings.hpp"

#include "engine/secrets/vault_key.hpp"
#include "store/settings.hpp"

namespace berth::engine {
namespace {

std::string context_of(const std::string& name) {
  return "setting:" + name;
}

store::SealedSetting seal(Services& services, const std::string& name, const Secret& value) {
  vault::Sealed sealed = services.vault.seal(value.reveal(), context_of(name));
  return {.key_id = std::move(sealed.key_id), .material = std::move(sealed.text)};
}

// Another server may have rotated the keys since this one read them.
Result<Secret> unseal(Services& services, const std::string& name,
                      const store::SealedSetting& setting) {
  if (!services.vault.has_key(setting.key_id)) BERTH_DO(services.vault.reload());
  return services.vault.unseal({setting.key_id, setting.material}, context_of(name));
}

Secret random_secret(Random& random, std::size_t bytes) {
  std::vector<unsigned char> raw(bytes);
  random.fill(raw);
  Secret value{std::string_view{reinterpret_cast<const char*>(raw.data()), raw.size()}};
  ::explicit_bzero(raw.data(), raw.size());
  return value;
}

}  // namespace

Task<Secret> ensure_sealed_random(Services& services, std::string name, std::size_t bytes) {
  const auto find_or_make = [&](store::Session& s) -> Result<store::SealedSetting> {
    BERTH_TRY(const auto found, store::find_sealed_setting(s, name));
    if (found) return found->value;
    BERTH_DO(expect_vault_key(s, services));
    store::SealedSetting made = seal(services, name, random_secret(services.random, bytes));
    BERTH_DO(store::save_sealed_setting(s, name, made, 0, services.clock.now()));
    return made;
  };
  Result<store::SealedSetting> setting = co_await services.store.write(find_or_make);
  // Another server was faster: the second attempt finds its setting.
  if (!setting && setting.error().code == Errc::conflict) {
    setting = co_await services.store.write(find_or_make);
  }
  if (!setting) co_return std::unexpected(std::move(setting).error());
  co_return unseal(services, name, *setting);
}

Task<> reseal_settings(Services& services) {
  // They are few, and one transaction keeps them consistent.
  co_return co_await services.store.write([&](store::Session& s) -> Result<> {
    BERTH_TRY(const auto settings, store::list_sealed_settings(s));
    for (const auto& [name, setting] : settings) {
      if (setting.value.key_id == services.vault.current_key_id()) continue;
      BERTH_TRY(const Secret value, unseal(services, name, setting.value));
      BERTH_DO(store::save_sealed_setting(s, name, seal(services, name, value), setting.version,
                                          services.clock.now()));
    }
    return {};
  });
}

}  // namespace berth::engine
