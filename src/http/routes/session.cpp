// Identifies the page's user, and sets the cookie by which a browser sends its key. A WebSocket or
// an event stream cannot carry a header that the page chooses, and no script can read an HttpOnly
// cookie.
#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"
#include "http/server/bearer_gate.hpp"

namespace berth::http {
namespace {

constexpr core::PageRequest all_that_fit{.limit = core::page_limit_max};

// The sender has no key yet: room for a key and little else.
constexpr std::size_t sign_in_bytes_max = 4096;

struct SessionQuery {
  std::optional<core::CompanyId> company;
};
BOOST_DESCRIBE_STRUCT(SessionQuery, (), (company))

struct SignIn {
  Secret key;
};
BOOST_DESCRIBE_STRUCT(SignIn, (), (key))

struct AgentBrief {
  core::AgentId id;
  std::string name;
  core::AdapterType adapter_type;
};
BOOST_DESCRIBE_STRUCT(AgentBrief, (), (id, name, adapter_type))

// The settings that every caller's forms and pages need.
struct PageSettings {
  bool strict_secrets = false;
  std::int64_t answer_retention_hours = 0;
};
BOOST_DESCRIBE_STRUCT(PageSettings, (), (strict_secrets, answer_retention_hours))

// All that a page must know before it shows anything, in one response.
struct SessionView {
  std::string version;
  std::string deployment_mode;
  core::CallerKind kind = core::CallerKind::nobody;
  core::Role role = core::Role::viewer;
  std::vector<core::Permission> permissions;
  std::vector<engine::CompanyView> companies;
  std::optional<engine::CompanyView> company;  // the requested one, else the first
  std::vector<engine::EnvironmentBrief> environments;
  std::vector<AgentBrief> agents;
  std::optional<PageSettings> settings;
};
BOOST_DESCRIBE_STRUCT(SessionView, (),
                      (version, deployment_mode, kind, role, permissions, companies, company,
                       environments, agents, settings))

std::vector<core::Permission> permissions_of(const core::Caller& who) {
  std::vector<core::Permission> granted;
  for (const core::Permission permission : all<core::Permission>()) {
    if (core::authorize(who, permission)) granted.push_back(permission);
  }
  return granted;
}

Task<SessionView> look(engine::Engine& work, const ServerFacts& facts, core::Call call,
                       SessionQuery query) {
  SessionView seen{.version = facts.version,
                   .deployment_mode = facts.mode,
                   .kind = call.who.kind,
                   .role = call.who.role,
                   .permissions = permissions_of(call.who),
                   .companies = {},
                   .company = {},
                   .environments = {},
                   .agents = {},
                   .settings = {}};
  if (call.who.kind == core::CallerKind::nobody) co_return seen;
  BERTH_CO_TRY(const auto settings, co_await work.settings.get(call));
  seen.settings =
      PageSettings{settings.value.strict_secrets, settings.value.answer_retention_hours};
  BERTH_CO_TRY(auto companies, co_await work.companies.list(call, all_that_fit));
  seen.companies = std::move(companies.rows);
  if (seen.companies.empty()) co_return seen;
  const auto asked = std::ranges::find_if(seen.companies, [&](const engine::CompanyView& company) {
    return query.company == company.id;
  });
  seen.company = asked != seen.companies.end() ? *asked : seen.companies.front();
  const core::CompanyId company = seen.company->id;
  BERTH_CO_TRY(const auto environments,
               co_await work.environments.list(call, company, {}, all_that_fit));
  for (const auto& each : environments.rows) {
    seen.environments.push_back({each.id, each.name, each.driver});
  }
  BERTH_CO_TRY(const auto agents, co_await work.agents.list(call, company, all_that_fit));
  for (const auto& each : agents.rows) {
    seen.agents.push_back({each.id, each.name, each.adapter_type});
  }
  co_return seen;
}

Response with_cookie(std::string_view key, std::string_view age, bool is_secure) {
  std::string cookie = std::string{session_cookie} + "=" + std::string{key} +
                       "; Path=/; HttpOnly; SameSite=Strict" + std::string{age};
  if (is_secure) cookie += "; Secure";
  return {.status = 204, .content_type = {}, .headers = {{"Set-Cookie", std::move(cookie)}}};
}

// The cookie lasts for the browser session; the key behind it lasts as long as it is valid.
Task<Response> sign_in(engine::Engine& work, bool is_secure, SignIn wanted) {
  const std::string key{wanted.key.reveal()};
  BERTH_CO_DO(co_await work.tokens.identify(key));
  co_return with_cookie(key, "", is_secure);
}

Task<Response> sign_out(bool is_secure) {
  co_return with_cookie("", "; Max-Age=0", is_secure);
}

}  // namespace

std::vector<Route> session_routes(engine::Engine& work, const ServerFacts& facts) {
  using core::Permission;
  const bool is_secure = facts.is_tls;
  return {
      Endpoint<None, SessionQuery, None, SessionView>{
          .verb = Verb::get,
          .path = "/api/session",
          .needs = Permission::open,
          .tag = "session",
          .says = "Say who is calling, what they may do, and what they can choose from",
          .call = [&work, facts](core::Call call,
                                 auto in) { return look(work, facts, std::move(call), in.query); }},
      Endpoint<None, None, SignIn, Response>{
          .verb = Verb::post,
          .path = "/api/session",
          .needs = Permission::open,
          .tag = "session",
          .says = "Sign a browser in: its key becomes a cookie that no script can read",
          .status = 204,
          .body_bytes_max = sign_in_bytes_max,
          .call = [&work, is_secure](
                      core::Call /*call*/,
                      auto in) { return sign_in(work, is_secure, std::move(in.body)); }},
      Endpoint<None, None, None, Response>{
          .verb = Verb::delete_,
          .path = "/api/session",
          .needs = Permission::open,
          .tag = "session",
          .says = "Sign a browser out",
          .status = 204,
          .call = [is_secure](core::Call /*call*/, auto /*in*/) { return sign_out(is_secure); }},
  };
}

}  // namespace berth::http
