#include "store/idempotency.hpp"

namespace berth::store {

Result<std::optional<KeptAnswer>> find_answer(Session& session, const std::string& caller,
                                              const std::string& key) {
  BERTH_TRY(auto found,
            select_one<KeptAnswer>(session, "where caller = $1 and key = $2", caller, key));
  if (!found) return std::nullopt;
  return std::move(found->value);
}

Result<> keep_answer(Session& session, const KeptAnswer& answer) {
  constexpr std::string_view sql = R"sql(
    insert into idempotency_answers (caller, key, fingerprint, answer, created_at, version)
    values ($1, $2, $3, $4, $5, 1)
    on conflict (caller, key) do nothing
  )sql";
  BERTH_TRY(const Rows kept, query(session, sql, answer.caller, answer.key, answer.fingerprint,
                                   answer.answer, answer.created_at));
  if (kept.changed == 1) return {};
  return fail(Errc::conflict,
              "Another request with the Idempotency-Key '" + answer.key + "' was faster",
              "repeat the request to get its answer");
}

Result<> forget_answer(Session& session, const KeptAnswer& answer) {
  BERTH_TRY(const Rows gone,
            query(session,
                  "delete from idempotency_answers where caller = $1 and key = $2 and answer = $3",
                  answer.caller, answer.key, answer.answer));
  if (gone.changed == 1) return {};
  return fail(Errc::conflict,
              "Another request with the Idempotency-Key '" + answer.key + "' was faster",
              "repeat the request to get its answer");
}

Result<std::int64_t> forget_answers(Session& session, Time older_than, std::int64_t limit) {
  constexpr std::string_view sql = R"sql(
    delete from idempotency_answers where (caller, key) in (
      select caller, key from idempotency_answers where created_at < $1
      order by created_at limit $2)
  )sql";
  BERTH_TRY(const Rows gone, query(session, sql, older_than, limit));
  return gone.changed;
}

}  // namespace berth::store
