#include "engine/accounts/tokens.hpp"

#include "base/digest.hpp"
#include "base/log.hpp"
#include "engine/environments/checks.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/listing.hpp"
#include "store/agents.hpp"
#include "store/companies.hpp"
#include "store/tokens.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view key_prefix = "brt_";
constexpr std::size_t key_bytes = 32;
constexpr std::size_t hint_length = 8;
constexpr std::size_t key_length_max = 512;
constexpr std::int64_t touch_every_ms = 60'000;

std::unexpected<Error> wrong(std::string_view at, const std::string& what) {
  return std::unexpected(Error{Errc::validation_failed,
                               std::string{at} + " " + what,
                               "see 'berth token create --help'",
                               {{std::string{at}, what}}});
}

}  // namespace

std::unexpected<Error> unknown_token() {
  return fail(Errc::unauthenticated, "the bearer token is unknown, revoked or expired",
              "ask an administrator for a new one: berth token create");
}

Task<core::Listing<core::Token>> Tokens::list(core::Call call, core::CompanyId company,
                                              core::PageRequest page) {
  using Rows = core::Page<core::Token>;
  BERTH_CO_TRY(Rows rows, co_await services_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    return store::list_tokens(s, core::Reach::only(company), page);
  }));
  co_return to_listing(std::move(rows));
}

Task<core::Listing<core::Token>> Tokens::list_all(core::Call call, core::PageRequest page) {
  BERTH_CO_TRY(auto rows, co_await services_.store.read([&](store::Session& s) {
    return store::list_tokens(s, core::Reach::of(call.who), page);
  }));
  co_return to_listing(std::move(rows));
}

Task<core::Token> Tokens::get(core::Call call, core::TokenId id) {
  BERTH_CO_TRY(auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_token(s, core::Reach::of(call.who), id);
  }));
  co_return std::move(row.value);
}

Result<NewToken> Tokens::insert(store::Session& session, const core::Call& call,
                                const Request& request, std::string key) {
  const Time now = services_.clock.now();
  core::Token token{.id = core::TokenId::make(services_.random, now),
                    .company_id = request.company_id,
                    .kind = request.kind,
                    .agent_id = request.agent_id,
                    .role = request.role,
                    .name = request.name,
                    .hint = key.substr(0, hint_length),
                    .expires_at = request.expires_at,
                    .last_used_at = std::nullopt,
                    .revoked_at = std::nullopt,
                    .created_at = now,
                    .created_by = call.who.responsible_user()};
  BERTH_DO(store::insert_token(session, token, sha256_hex(key)));
  if (request.company_id) {
    BERTH_DO(record(
        session, services_, call,
        {*request.company_id,
         "token.created",
         "token",
         token.id.str(),
         {{"name", token.name}, {"kind", name_of(token.kind)}, {"role", name_of(token.role)}}}));
  }
  return NewToken{std::move(token), std::move(key)};
}

Task<NewToken> Tokens::create(core::Call call, core::CompanyId company, CreateToken wanted) {
  BERTH_CO_TRY(wanted.name, checked_name(wanted.name, "/name"));
  const auto kind = wanted.kind.value_or(core::TokenKind::operator_key);
  const bool for_agent = kind == core::TokenKind::agent_key;
  if (for_agent && !wanted.agent_id) co_return wrong("/agentId", "is required for an agent key");
  if (!for_agent && wanted.agent_id) co_return wrong("/agentId", "is for agent keys only");
  if (for_agent && wanted.role) co_return wrong("/role", "is for operator keys only");
  if (wanted.expires_at && *wanted.expires_at <= services_.clock.now()) {
    co_return wrong("/expiresAt", "is in the past");
  }
  const Request request{company,         kind,        wanted.role.value_or(core::Role::viewer),
                        wanted.agent_id, wanted.name, wanted.expires_at};
  const auto work = [&](store::Session& s) -> Result<NewToken> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    if (request.agent_id)
      BERTH_DO(store::find_agent(s, core::Reach::only(company), *request.agent_id));
    return insert(s, call, request, make_key());
  };
  BERTH_CO_TRY(auto made, co_await idempotent_write(services_, call, work));
  services_.feed.changed(company);
  co_return made;
}

Task<NewToken> Tokens::create_instance_key(core::Call call, CreateToken wanted) {
  BERTH_CO_TRY(wanted.name, checked_name(wanted.name, "/name"));
  if (wanted.kind == core::TokenKind::agent_key || wanted.agent_id) {
    co_return wrong("/kind", "must be operator_key: an agent belongs to a company");
  }
  if (wanted.role && *wanted.role != core::Role::admin) {
    co_return wrong("/role", "must be admin for a key without a company");
  }
  if (wanted.expires_at && *wanted.expires_at <= services_.clock.now()) {
    co_return wrong("/expiresAt", "is in the past");
  }
  const Request request{std::nullopt,      core::TokenKind::operator_key,
                        core::Role::admin, std::nullopt,
                        wanted.name,       wanted.expires_at};
  co_return co_await idempotent_write(
      services_, call, [&](store::Session& s) { return insert(s, call, request, make_key()); });
}

Task<core::Token> Tokens::revoke(core::Call call, core::TokenId id) {
  const auto work = [&](store::Session& s) -> Result<core::Token> {
    BERTH_TRY(auto row, store::find_token(s, core::Reach::of(call.who), id));
    const Time now = services_.clock.now();
    if (row.value.revoked_at) return std::move(row.value);
    BERTH_DO(store::revoke_token(s, id, now));
    row.value.revoked_at = now;
    if (row.value.company_id) {
      BERTH_DO(record(
          s, services_, call,
          {*row.value.company_id, "token.revoked", "token", id.str(), {{"name", row.value.name}}}));
    }
    return std::move(row.value);
  };
  BERTH_CO_TRY(auto token, co_await services_.store.write(work));
  if (token.company_id) services_.feed.changed(*token.company_id);
  co_return token;
}

Task<core::Caller> Tokens::identify(std::string key) {
  const Time now = services_.clock.now();
  std::optional<core::Token> token;
  if (key.starts_with(key_prefix) && key.size() <= key_length_max) {
    const std::string hash = sha256_hex(key);
    BERTH_CO_TRY(token, co_await services_.store.read([&](store::Session& s) {
      return store::find_token_by_hash(s, hash, now);
    }));
  }
  if (!token) co_return unknown_token();
  if (!token->last_used_at || now - *token->last_used_at > touch_every_ms) {
    const Result<> touched = co_await services_.store.write(
        [&](store::Session& s) { return store::touch_token(s, token->id, now); });
    if (!touched) log::debug("token.touch_failed", {{"token", token->id}});
  }
  co_return core::Caller{.kind = token->kind == core::TokenKind::agent_key
                                     ? core::CallerKind::agent_key
                                     : core::CallerKind::operator_key,
                         .role = token->role,
                         .company_id = token->company_id,
                         .agent_id = token->agent_id,
                         .token_id = token->id,
                         .on_behalf_of = token->created_by};
}

std::string Tokens::make_key() {
  return std::string{key_prefix} + random_base64url(services_.random, key_bytes);
}

Task<bool> Tokens::any() {
  BERTH_CO_TRY(const std::int64_t count, co_await services_.store.read(store::count_tokens));
  co_return count > 0;
}

Task<bool> Tokens::add_first_admin(std::string key) {
  co_return co_await services_.store.write([&](store::Session& s) -> Result<bool> {
    BERTH_TRY(const std::int64_t count, store::count_tokens(s));
    if (count > 0) return false;
    const core::Call system{.who = {.kind = core::CallerKind::local_operator}};
    const Request request{std::nullopt, core::TokenKind::operator_key, core::Role::admin,
                          std::nullopt, "first administrator",         std::nullopt};
    BERTH_DO(insert(s, system, request, key));
    return true;
  });
}

}  // namespace berth::engine
