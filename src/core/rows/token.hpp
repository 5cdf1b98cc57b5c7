#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

namespace berth::core {

// The visible part of a bearer key. The key itself is shown once; the store holds only its hash.
struct Token {
  TokenId id;
  std::optional<CompanyId>
      company_id;  // absent: an instance administrator's key, valid for every company
  TokenKind kind = TokenKind::operator_key;
  std::optional<AgentId> agent_id;
  Role role = Role::viewer;
  std::string name;
  std::string hint;  // the first characters, so that a user can tell keys apart
  std::optional<Time> expires_at;
  std::optional<Time> last_used_at;
  std::optional<Time> revoked_at;
  Time created_at;
  std::optional<std::string> created_by = {};  // the creator, as in the activity
};
BOOST_DESCRIBE_STRUCT(Token, (),
                      (id, company_id, kind, agent_id, role, name, hint, expires_at, last_used_at,
                       revoked_at, created_at, created_by))

}  // namespace berth::core
