#include "engine/accounts/tokens.hpp"
#include "api/tables.hpp"
#include "api/use.hpp"

namespace berth::api {

std::vector<Entry> token_operations(engine::Tokens& tokens) {
  using core::Permission;
  using engine::Tokens;
  return {
      Operation{.name = "token.list",
                .needs = Permission::company_admin,
                .says = "List the keys of a company; the keys themselves are never shown",
                .call = use(tokens, &Tokens::list)},
      Operation{.name = "token.create",
                .needs = Permission::company_admin,
                .says = "Create a key for an operator or an agent of a company; it is shown this "
                        "once",
                .call = use(tokens, &Tokens::create)},
      Operation{.name = "token.list_all",
                .needs = Permission::instance_admin,
                .says = "List every key, those of instance administrators too",
                .call = use(tokens, &Tokens::list_all)},
      Operation{.name = "token.create_instance_key",
                .needs = Permission::instance_admin,
                .says = "Create a key of an instance administrator; it is shown this once",
                .call = use(tokens, &Tokens::create_instance_key)},
      Operation{.name = "token.get",
                .needs = Permission::company_admin,
                .says = "Read what is known of a key",
                .call = use(tokens, &Tokens::get)},
      Operation{.name = "token.revoke",
                .needs = Permission::company_admin,
                .says = "Revoke a key: from now on it opens nothing",
                .call = use(tokens, &Tokens::revoke)},
  };
}

}  // namespace berth::api
