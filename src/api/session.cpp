#include "api/tables.hpp"
#include "api/use.hpp"
#include "engine/engine.hpp"

namespace berth::api {
namespace {

constexpr core::PageRequest all_that_fit{.limit = core::page_limit_max};

struct SessionOptions {
  std::optional<core::CompanyId> company;
};
BOOST_DESCRIBE_STRUCT(SessionOptions, (), (company))

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

Task<SessionView> look(engine::Engine& work, ServerFacts facts, core::Call call,
                       SessionOptions options) {
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
    return options.company == company.id;
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

Use<None, SessionOptions, None, SessionView> use_look(engine::Engine& work, ServerFacts facts) {
  return [&work, facts = std::move(facts)](core::Call call, auto in) {
    return look(work, facts, std::move(call), std::move(in.options));
  };
}

}  // namespace

std::vector<Entry> session_operations(engine::Engine& work, const ServerFacts& facts) {
  return {
      Operation{.name = "session.get",
                .needs = core::Permission::open,
                .says = "Say who is calling, what they may do, and what they can choose from",
                .call = use_look(work, facts)},
  };
}

}  // namespace berth::api
