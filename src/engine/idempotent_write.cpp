#include "engine/idempotent_write.hpp"

namespace berth::engine::idempotent_write_detail {
namespace {

std::string context_of(const core::Call& call) {
  return "answer:" + call.who.actor_id() + ":" + call.once->key;
}

}  // namespace

Result<std::optional<Secret>> find(store::Session& session, Services& services,
                                   const core::Call& call) {
  BERTH_TRY(const auto kept, store::find_answer(session, call.who.actor_id(), call.once->key));
  if (!kept) return std::nullopt;
  if (kept->fingerprint != call.once->fingerprint) {
    return fail(Errc::idempotency_key_reused,
                "Idempotency-Key '" + call.once->key + "' was used for another request",
                "use a new key for a new request");
  }
  const std::size_t colon = kept->answer.find(':');
  const vault::Sealed sealed{kept->answer.substr(0, colon), kept->answer.substr(colon + 1)};
  BERTH_TRY(Secret answer, services.vault.unseal(sealed, context_of(call)));
  return std::optional{std::move(answer)};
}

Result<> forget(store::Session& session, const core::Call& call) {
  BERTH_TRY(const auto kept, store::find_answer(session, call.who.actor_id(), call.once->key));
  return kept ? store::forget_answer(session, *kept) : Result<>{};
}

Result<> keep(store::Session& session, Services& services, const core::Call& call,
              const std::string& answer) {
  const vault::Sealed sealed = services.vault.seal(answer, context_of(call));
  return store::keep_answer(session, {.caller = call.who.actor_id(),
                                      .key = call.once->key,
                                      .fingerprint = call.once->fingerprint,
                                      .answer = sealed.key_id + ":" + sealed.text,
                                      .created_at = services.clock.now()});
}

}  // namespace berth::engine::idempotent_write_detail
