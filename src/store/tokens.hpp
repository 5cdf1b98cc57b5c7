#pragma once

#include "core/access.hpp"
#include "core/rows/token.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Token> = "tokens";

// `hash` is the hex SHA-256 of the key, in a column of its own that is never read back.
Result<> insert_token(Session& session, const core::Token& token, const std::string& hash);
// Neither revoked nor expired; nothing when there is none.
Result<std::optional<core::Token>> find_token_by_hash(Session& session, const std::string& hash,
                                                      Time now);
// Ordered by (created_at, id) descending. An instance administrator also sees the keys without a
// company.
Result<Page<core::Token>> list_tokens(Session& session, const core::Reach& reach,
                                      const PageRequest& page);
Result<Stored<core::Token>> find_token(Session& session, const core::Reach& reach,
                                       const core::TokenId& id);
Result<> revoke_token(Session& session, const core::TokenId& id, Time now);
// Writes at most once a minute for each key, so that reads stay reads.
Result<> touch_token(Session& session, const core::TokenId& id, Time now);
Result<std::int64_t> count_tokens(Session& session);

}  // namespace berth::store
