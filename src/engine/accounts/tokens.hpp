#pragma once

#include "core/call.hpp"
#include "core/page.hpp"
#include "core/rows/token.hpp"
#include "engine/services.hpp"

namespace berth::engine {

struct CreateToken {
  std::string name;
  std::optional<core::TokenKind> kind;
  std::optional<core::Role> role;
  std::optional<core::AgentId> agent_id;
  std::optional<Time> expires_at;
};
BOOST_DESCRIBE_STRUCT(CreateToken, (), (name, kind, role, agent_id, expires_at))

// The only response that ever contains a key.
struct NewToken {
  core::Token token;
  std::string key;
};
BOOST_DESCRIBE_STRUCT(NewToken, (), (token, key))

// The same error for every invalid bearer token, so that a caller cannot learn how close it was.
std::unexpected<Error> unknown_token();

// Bearer keys. The store holds their hashes.
class Tokens {
 public:
  explicit Tokens(Services& services) : services_(services) {}

  Task<core::Listing<core::Token>> list(core::Call call, core::CompanyId company,
                                        core::PageRequest page);
  Task<core::Listing<core::Token>> list_all(core::Call call, core::PageRequest page);
  Task<core::Token> get(core::Call call, core::TokenId id);
  Task<NewToken> create(core::Call call, core::CompanyId company, CreateToken wanted);
  // An instance administrator's key, valid for every company.
  Task<NewToken> create_instance_key(core::Call call, CreateToken wanted);
  Task<core::Token> revoke(core::Call call, core::TokenId id);

  // The caller that owns this key. `unauthenticated` for an unknown, revoked or expired one.
  Task<core::Caller> identify(std::string key);

  // The first administrator's key: the caller creates and saves it before it becomes valid.
  Task<bool> any();
  std::string make_key();
  // False when another server created a key meanwhile; this one then remains invalid.
  Task<bool> add_first_admin(std::string key);

 private:
  struct Request {
    std::optional<core::CompanyId> company_id;
    core::TokenKind kind;
    core::Role role;
    std::optional<core::AgentId> agent_id;
    std::string name;
    std::optional<Time> expires_at;
  };
  Result<NewToken> insert(store::Session& session, const core::Call& call, const Request& request,
                          std::string key);

  Services& services_;
};

}  // namespace berth::engine
