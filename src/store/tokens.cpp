#include "store/tokens.hpp"

#include "store/sql/constraint.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {
namespace {

constexpr std::int64_t touch_interval_ms = 60'000;

std::unexpected<Error> token_not_found_error() {
  return fail(Errc::token_not_found, "Token not found", "'berth token list' shows the tokens");
}

}  // namespace

Result<> insert_token(Session& session, const core::Token& token, const std::string& hash) {
  static const std::string sql = "insert into tokens (" + columns_of<core::Token>() +
                                 ", hash, version) values (" +
                                 mapping_detail::places(count_of<core::Token> + 1) + ", 1)";
  std::vector<Value> values = mapping_detail::values(token, MembersOf<core::Token>{});
  values.push_back(to_value(hash));
  Result<Rows> done = session.run(sql, values);
  if (done) return {};
  if (violates(done.error(), "tokens_hash")) {
    return fail(Errc::conflict, "Token " + token.name + " has the key of another token");
  }
  if (violates_reference(done.error())) {
    return fail(Errc::conflict, "Token " + token.name + " names a company or an agent that is gone",
                "choose one that exists");
  }
  return std::unexpected(std::move(done).error());
}

Result<std::optional<core::Token>> find_token_by_hash(Session& session, const std::string& hash,
                                                      Time now) {
  BERTH_TRY(auto found, select_one<core::Token>(session,
                                                "where hash = $1 and revoked_at is null"
                                                " and (expires_at is null or expires_at > $2)",
                                                hash, now));
  if (!found) return std::nullopt;
  return std::move(found->value);
}

Result<Page<core::Token>> list_tokens(Session& session, const core::Reach& reach,
                                      const PageRequest& page) {
  Filter filter;
  filter.equal_if("company_id", reach.sql());
  return select_page(session, filter, &core::Token::created_at, page);
}

Result<Stored<core::Token>> find_token(Session& session, const core::Reach& reach,
                                       const core::TokenId& id) {
  BERTH_TRY(auto found,
            select_one<core::Token>(session, "where id = $1 and ($2 = '' or company_id = $2)", id,
                                    reach.sql()));
  if (!found) return token_not_found_error();
  return *std::move(found);
}

Result<> revoke_token(Session& session, const core::TokenId& id, Time now) {
  // A second revocation keeps the time of the first.
  BERTH_TRY(const Rows revoked,
            query(session,
                  "update tokens set revoked_at = coalesce(revoked_at, $2), version = version + 1"
                  " where id = $1",
                  id, now));
  if (revoked.changed == 0) return token_not_found_error();
  return {};
}

Result<> touch_token(Session& session, const core::TokenId& id, Time now) {
  BERTH_DO(query(session,
                 "update tokens set last_used_at = $2, version = version + 1"
                 " where id = $1 and (last_used_at is null or last_used_at <= $3)",
                 id, now, now + -touch_interval_ms));
  return {};
}

Result<std::int64_t> count_tokens(Session& session) {
  BERTH_TRY(const Rows rows, session.run("select count(*) from tokens", {}));
  return mapping_detail::to_integer(rows.rows.at(0).at(0), "tokens", "count");
}

}  // namespace berth::store
