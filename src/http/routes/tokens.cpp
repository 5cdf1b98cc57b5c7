#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {
namespace {

struct TokenPath {
  core::TokenId token;
};
BOOST_DESCRIBE_STRUCT(TokenPath, (), (token))

}  // namespace

std::vector<Route> token_routes(engine::Engine& work) {
  using core::Permission;
  using core::Token;
  engine::Tokens& tokens = work.tokens;
  return {
      Endpoint<CompanyPath, PageQuery, None, core::Listing<Token>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/tokens",
          .needs = Permission::company_admin,
          .tag = "tokens",
          .says = "List the keys of a company; the keys themselves are never shown",
          .call =
              [&tokens](core::Call call, auto in) {
                return with_page(
                    in.query, [&tokens, call, company = in.path.company](core::PageRequest page) {
                      return tokens.list(call, company, std::move(page));
                    });
              }},
      Endpoint<CompanyPath, None, engine::CreateToken, engine::NewToken>{
          .verb = Verb::post,
          .path = "/api/companies/{company}/tokens",
          .needs = Permission::company_admin,
          .tag = "tokens",
          .says = "Create a key for an operator or an agent of a company; it is shown this once",
          .status = 201,
          .call =
              [&tokens](core::Call call, auto in) {
                return tokens.create(call, in.path.company, std::move(in.body));
              }},
      Endpoint<None, PageQuery, None, core::Listing<Token>>{
          .verb = Verb::get,
          .path = "/api/tokens",
          .needs = Permission::instance_admin,
          .tag = "tokens",
          .says = "List every key, those of instance administrators too",
          .call =
              [&tokens](core::Call call, auto in) {
                return with_page(in.query, [&tokens, call](core::PageRequest page) {
                  return tokens.list_all(call, std::move(page));
                });
              }},
      Endpoint<None, None, engine::CreateToken, engine::NewToken>{
          .verb = Verb::post,
          .path = "/api/tokens",
          .needs = Permission::instance_admin,
          .tag = "tokens",
          .says = "Create a key of an instance administrator; it is shown this once",
          .status = 201,
          .call = [&tokens](
                      core::Call call,
                      auto in) { return tokens.create_instance_key(call, std::move(in.body)); }},
      Endpoint<TokenPath, None, None, Token>{
          .verb = Verb::get,
          .path = "/api/tokens/{token}",
          .needs = Permission::company_admin,
          .tag = "tokens",
          .says = "Read what is known of a key",
          .call = [&tokens](core::Call call, auto in) { return tokens.get(call, in.path.token); }},
      Endpoint<TokenPath, None, None, Token>{
          .verb = Verb::delete_,
          .path = "/api/tokens/{token}",
          .needs = Permission::company_admin,
          .tag = "tokens",
          .says = "Revoke a key: from now on it opens nothing",
          .call = [&tokens](core::Call call,
                            auto in) { return tokens.revoke(call, in.path.token); }},
  };
}

}  // namespace berth::http
