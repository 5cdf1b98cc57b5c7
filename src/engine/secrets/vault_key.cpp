#include "engine/secrets/vault_key.hpp"

#include "base/json/peek.hpp"
#include "store/settings.hpp"

namespace berth::engine {
namespace {

const std::string vault_setting = "vault";

std::string key_in(const bj::object& document) {
  return peek<std::string>(document, "keyId").value_or("");
}

std::unexpected<Error> wrong_key(const std::string& wanted) {
  return fail(Errc::master_key_missing,
              "the secrets of this database are sealed with master key " + wanted +
                  ", which this server does not have",
              "restore the key file from its backup, or name it with BERTH_MASTER_KEY_FILE");
}

}  // namespace

Task<> adopt_vault_key(Services& services) {
  co_return co_await services.store.write([&](store::Session& s) -> Result<> {
    BERTH_TRY(const auto known, store::find_setting(s, vault_setting));
    if (!known) {
      const bj::object document{{"keyId", services.vault.current_key_id()}};
      return store::save_setting(s, vault_setting, document, 0, services.clock.now());
    }
    const std::string wanted = key_in(known->value);
    if (!services.vault.has_key(wanted)) return wrong_key(wanted);
    if (wanted == services.vault.current_key_id()) return {};
    // A rotation stopped before it was announced: both keys are in the file, and the new one can be
    // used.
    const bj::object document{{"keyId", services.vault.current_key_id()}};
    return store::save_setting(s, vault_setting, document, known->version, services.clock.now());
  });
}

Result<> expect_vault_key(store::Session& session, Services& services) {
  BERTH_TRY(const auto known, store::find_setting(session, vault_setting));
  if (!known) return {};
  const std::string wanted = key_in(known->value);
  if (wanted == services.vault.current_key_id()) return {};
  BERTH_DO(services.vault.reload());
  if (wanted == services.vault.current_key_id()) return {};
  return wrong_key(wanted);
}

Task<> announce_vault_key(Services& services) {
  co_return co_await services.store.write([&](store::Session& s) -> Result<> {
    BERTH_TRY(const auto known, store::find_setting(s, vault_setting));
    const bj::object document{{"keyId", services.vault.current_key_id()}};
    return store::save_setting(s, vault_setting, document, known ? known->version : 0,
                               services.clock.now());
  });
}

}  // namespace berth::engine
