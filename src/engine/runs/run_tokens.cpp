#include "engine/runs/run_tokens.hpp"

#include "base/digest.hpp"
#include "base/json/peek.hpp"
#include "engine/accounts/tokens.hpp"
#include "engine/secrets/sealed_settings.hpp"
#include "store/runs.hpp"

namespace berth::engine {
namespace {

// The names that existing clients of this API expect.
constexpr std::string_view issuer = "paperclip";
constexpr std::string_view audience = "paperclip-api";
constexpr std::string_view instance = "default";  // as plugins see it
// {"alg":"HS256","typ":"JWT"}. Compared as text: no other algorithm is ever accepted.
constexpr std::string_view header = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
constexpr std::size_t token_bytes_max = 2048;
constexpr std::size_t signing_key_bytes = 32;
// The run's end is what ends a token. This bounds one whose run is never finished.
constexpr std::int64_t lifetime_s = 48LL * 3600;
constexpr std::int64_t ms_per_s = 1000;

const std::string signing_key_setting = "run_token_key";

// The registered claims have the names of RFC 7519, the others those that agents already read.
struct Claims {
  core::AgentId agent_id;
  core::CompanyId company_id;
  core::RunId run_id;
  std::int64_t expires_s = 0;
};

std::string payload_of(const core::Run& run, core::AdapterType adapter) {
  const std::int64_t issued_s = run.created_at.ms / ms_per_s;
  bj::value responsible;
  if (run.responsible_user_id) responsible = *run.responsible_user_id;
  const std::string text = encode_text(bj::object{{"sub", run.agent_id->str()},
                                                  {"company_id", run.company_id.str()},
                                                  {"adapter_type", name_of(adapter)},
                                                  {"run_id", run.id.str()},
                                                  {"responsible_user_id", responsible},
                                                  {"instance_id", instance},
                                                  {"iat", issued_s},
                                                  {"exp", issued_s + lifetime_s},
                                                  {"iss", issuer},
                                                  {"aud", audience}});
  return base64url({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
}

std::string claim_at(const bj::object& claims, std::string_view name) {
  return peek<std::string>(claims, name).value_or("");
}

// Only for data signed with our key, so a missing or odd claim needs no detailed error.
std::optional<Claims> read_claims(std::string_view payload) {
  const auto text = from_base64url(payload);
  if (!text) return std::nullopt;
  const auto document = parse_json(*text);
  if (!document || !document->is_object()) return std::nullopt;
  const bj::object& claims = document->get_object();
  if (claim_at(claims, "iss") != issuer || claim_at(claims, "aud") != audience) return std::nullopt;
  const auto expiry = peek<std::int64_t>(claims, "exp");
  if (!expiry) return std::nullopt;
  const auto agent = core::AgentId::parse(claim_at(claims, "sub"));
  const auto company = core::CompanyId::parse(claim_at(claims, "company_id"));
  const auto run = core::RunId::parse(claim_at(claims, "run_id"));
  if (!agent || !company || !run) return std::nullopt;
  return Claims{*agent, *company, *run, *expiry};
}

std::string signature_of(const Secret& key, std::string_view text) {
  return base64url(hmac_sha256(key.reveal(), text));
}

// The claims of a token that was signed with this key.
std::optional<Claims> verified(const Secret& key, std::string_view token) {
  const std::size_t dot = token.rfind('.');
  const std::string_view text = token.substr(0, dot);
  if (text.size() <= header.size()) return std::nullopt;
  if (!equal_in_constant_time(signature_of(key, text), token.substr(dot + 1))) return std::nullopt;
  return read_claims(text.substr(header.size() + 1));
}

}  // namespace

bool is_run_token(std::string_view token) {
  return token.size() > header.size() && token.starts_with(header) && token[header.size()] == '.';
}

Task<> RunTokens::load_key() {
  if (key_) co_return Result<>{};
  BERTH_CO_TRY(key_,
               co_await ensure_sealed_random(services_, signing_key_setting, signing_key_bytes));
  co_return Result<>{};
}

Task<Secret> RunTokens::make(const core::Run& run, core::AdapterType adapter) {
  if (!run.agent_id) {
    co_return fail(Errc::unprocessable, "Run " + run.id.str() + " has no agent to speak for");
  }
  const std::string text = std::string{header} + '.' + payload_of(run, adapter);
  BERTH_CO_DO(co_await load_key());
  co_return Secret{text + '.' + signature_of(*key_, text)};
}

Task<core::Caller> RunTokens::identify(std::string token) {
  if (!is_run_token(token) || token.size() > token_bytes_max) co_return unknown_token();
  BERTH_CO_DO(co_await load_key());
  const std::optional<Claims> claims = verified(*key_, token);
  if (!claims || services_.clock.now().ms >= claims->expires_s * ms_per_s)
    co_return unknown_token();
  const auto run = co_await services_.store.read([&](store::Session& s) {
    return store::find_run(s, core::Reach::only(claims->company_id), claims->run_id);
  });
  if (!run && run.error().code != Errc::run_not_found) co_return std::unexpected(run.error());
  if (!run || core::is_final(run->value.status) || run->value.agent_id != claims->agent_id) {
    co_return unknown_token();
  }
  co_return core::Caller{.kind = core::CallerKind::agent_key,
                         .role = core::Role::viewer,
                         .company_id = claims->company_id,
                         .agent_id = claims->agent_id,
                         .run_id = claims->run_id,
                         .on_behalf_of = run->value.responsible_user_id};
}

}  // namespace berth::engine
