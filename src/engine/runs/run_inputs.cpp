#include "engine/runs/run_inputs.hpp"

#include "engine/secrets/vault_key.hpp"

namespace berth::engine {
namespace {

std::string input_context(const core::RunId& run) {
  return "run-input:" + run.str();
}

store::SealedInput seal_input(Services& services, const core::RunId& run, const Secret& text) {
  vault::Sealed sealed = services.vault.seal(text.reveal(), input_context(run));
  return {.run_id = run, .key_id = std::move(sealed.key_id), .material = std::move(sealed.text)};
}

// Another server may have rotated the keys since this one read them.
Result<Secret> unseal_input(Services& services, const store::SealedInput& sealed) {
  if (!services.vault.has_key(sealed.key_id)) BERTH_DO(services.vault.reload());
  return services.vault.unseal({sealed.key_id, sealed.material}, input_context(sealed.run_id));
}

}  // namespace

Result<store::SealedInput> seal_run_input(store::Session& session, Services& services,
                                          const core::RunInput& input) {
  BERTH_DO(expect_vault_key(session, services));
  std::string text = encode_text(input);
  const Secret secret{text};
  ::explicit_bzero(text.data(), text.size());
  return seal_input(services, input.run_id, secret);
}

Result<core::RunInput> unseal_run_input(Services& services, const store::SealedInput& sealed) {
  BERTH_TRY(const Secret text, unseal_input(services, sealed));
  return decode_text<core::RunInput>(text.reveal(), UnknownKeys::ignore);
}

Result<store::SealedInput> reseal_run_input(Services& services, const store::SealedInput& sealed) {
  BERTH_TRY(const Secret text, unseal_input(services, sealed));
  return seal_input(services, sealed.run_id, text);
}

}  // namespace berth::engine
