#include "engine/secrets/secret_seals.hpp"

namespace berth::engine {

std::string seal_context(const core::SecretId& secret, std::int64_t number) {
  return "secret:" + secret.str() + ":" + std::to_string(number);
}

// A value sealed with an unknown key may have been resealed by another server, so the key file is
// reread.
Result<Secret> unseal_version(Services& services, const core::SecretVersion& version) {
  if (!services.vault.has_key(version.key_id)) BERTH_DO(services.vault.reload());
  return services.vault.unseal({version.key_id, version.material},
                               seal_context(version.secret_id, version.number));
}

Result<core::SecretVersion> resealed_version(Services& services,
                                             const core::SecretVersion& version) {
  BERTH_TRY(const Secret value, unseal_version(services, version));
  core::SecretVersion next = version;
  vault::Sealed sealed =
      services.vault.seal(value.reveal(), seal_context(version.secret_id, version.number));
  next.key_id = std::move(sealed.key_id);
  next.material = std::move(sealed.text);
  next.fingerprint = services.vault.fingerprint(value.reveal());
  return next;
}

}  // namespace berth::engine
