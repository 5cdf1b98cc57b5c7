#pragma once

#include "core/access.hpp"
#include "core/rows/token.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Token> = "tokens";

// `hash` is the key's SHA-256 in hex, in a separate column that is never read back.
Result<> insert_token(Session& session, const core::Token& token, const std::string& hash);
// Neither revoked nor expired; empty when there is none.
Result<std::optional<core::Token>> find_token_by_hash(Session& session, const std::string& hash,
                                                      Time now);
// Ordered by (created_at, id) descending. An instance administrator also sees the keys without a
// company.
Result<Page<core::Token>> list_tokens(Session& session, const core::Reach& reach,
                                      const PageRequest& page);
Result<Stored<core::Token>> find_token(Session& session, const core::Reach& reach,
                                       const core::TokenId& id);
Result<> revoke_token(Session& session, const core::TokenId& id, Time now);
// Writes at most once a minute per key, so that most requests write nothing.
Result<> touch_token(Session& session, const core::TokenId& id, Time now);
Result<std::int64_t> count_tokens(Session& session);

}  // namespace berth::store
