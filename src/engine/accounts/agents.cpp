#include "engine/accounts/agents.hpp"

#include "base/log.hpp"
#include "core/config/adapter_config.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/environments/checks.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/listing.hpp"
#include "engine/secrets/environment_secrets.hpp"
#include "store/agents.hpp"
#include "store/companies.hpp"

namespace berth::engine {
namespace {

// How another agent is started, and with what, is as little of anybody's business as the config of
// an environment.
core::Agent shown_agent(core::Agent agent, const core::Caller& who) {
  if (core::sees_config(who) || who.agent_id == agent.id) return agent;
  agent.adapter_config.clear();
  agent.runtime_config.clear();
  agent.metadata.reset();
  return agent;
}

}  // namespace

Task<core::Listing<core::Agent>> Agents::list(core::Call call, core::CompanyId company,
                                              core::PageRequest page) {
  using Rows = core::Page<core::Agent>;
  BERTH_CO_TRY(Rows rows, co_await services_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    return store::list_agents(s, company, page);
  }));
  for (auto& row : rows.rows) row.value = shown_agent(std::move(row.value), call.who);
  co_return to_listing(std::move(rows));
}

Task<core::Stored<core::Agent>> Agents::get(core::Call call, core::AgentId id) {
  BERTH_CO_TRY(auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_agent(s, core::Reach::of(call.who), id);
  }));
  row.value = shown_agent(std::move(row.value), call.who);
  co_return row;
}

Task<core::Stored<core::Agent>> Agents::self(core::Call call) {
  if (!call.who.agent_id) {
    co_return fail(Errc::forbidden, "only an agent may ask about itself",
                   "use the key of an agent");
  }
  co_return co_await get(call, *call.who.agent_id);
}

Result<> Agents::settle(store::Session& session, core::Agent& agent, const bj::object& stored) {
  BERTH_TRY(const InstanceSettings settings, read_settings(session));
  BERTH_TRY(auto config, core::normalize_adapter_config(agent.adapter_type, agent.adapter_config,
                                                        settings.plain_secrets(), stored));
  agent.adapter_config = std::move(config.config);
  if (agent.default_environment_id) {
    BERTH_DO(check_default_environment(session, services_, agent.company_id,
                                       *agent.default_environment_id,
                                       core::drivers_for(agent.adapter_type), catalog_.facts()));
  }
  return bind_refs(session, services_, agent.company_id, core::SecretTarget::agent, agent.id.str(),
                   BindingPart::env_vars, config.refs);
}

Task<core::Stored<core::Agent>> Agents::create(core::Call call, core::CompanyId company,
                                               CreateAgent wanted) {
  BERTH_CO_TRY(wanted.name, checked_name(wanted.name, "/name"));
  const auto work = [&](store::Session& s) -> Result<core::Stored<core::Agent>> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    const Time now = services_.clock.now();
    core::Agent agent{.id = core::AgentId::make(services_.random, now),
                      .company_id = company,
                      .name = wanted.name,
                      .role = wanted.role.value_or("general"),
                      .title = wanted.title,
                      .status = core::AgentStatus::idle,
                      .adapter_type = wanted.adapter_type,
                      .adapter_config = wanted.adapter_config.value_or(bj::object{}),
                      .runtime_config = wanted.runtime_config.value_or(bj::object{}),
                      .default_environment_id = wanted.default_environment_id,
                      .metadata = wanted.metadata,
                      .last_heartbeat_at = std::nullopt,
                      .created_at = now,
                      .updated_at = now};
    BERTH_DO(settle(s, agent, {}));
    BERTH_DO(store::insert_agent(s, agent));
    BERTH_DO(record(s, services_, call,
                    {company,
                     "agent.created",
                     "agent",
                     agent.id.str(),
                     {{"name", agent.name}, {"adapterType", name_of(agent.adapter_type)}}}));
    return core::Stored<core::Agent>{std::move(agent), 1};
  };
  BERTH_CO_TRY(auto made, co_await idempotent_write(services_, call, work));
  services_.feed.changed(company);
  co_return made;
}

Task<core::Stored<core::Agent>> Agents::update(core::Call call, core::AgentId id,
                                               UpdateAgent change) {
  BERTH_CO_DO(not_null(change.name, "/name"));
  BERTH_CO_DO(not_null(change.role, "/role"));
  BERTH_CO_DO(not_null(change.status, "/status"));
  BERTH_CO_DO(not_null(change.adapter_type, "/adapterType"));
  BERTH_CO_DO(not_null(change.adapter_config, "/adapterConfig"));
  BERTH_CO_DO(not_null(change.runtime_config, "/runtimeConfig"));
  if (change.name.value) {
    BERTH_CO_TRY(change.name.value, checked_name(*change.name.value, "/name"));
  }
  const auto work = [&](store::Session& s) -> Result<core::Stored<core::Agent>> {
    BERTH_TRY(auto row, store::find_agent(s, core::Reach::of(call.who), id));
    BERTH_DO(expect_version(call, row.version));
    core::Agent& agent = row.value;
    const bj::object stored = agent.adapter_config;
    agent.name = change.name.or_else(agent.name);
    agent.role = change.role.or_else(agent.role);
    agent.title = change.title.or_keep(agent.title);
    agent.status = change.status.or_else(agent.status);
    agent.adapter_type = change.adapter_type.or_else(agent.adapter_type);
    agent.adapter_config = change.adapter_config.or_else(agent.adapter_config);
    agent.runtime_config = change.runtime_config.or_else(agent.runtime_config);
    agent.default_environment_id =
        change.default_environment_id.or_keep(agent.default_environment_id);
    agent.metadata = change.metadata.or_keep(agent.metadata);
    agent.updated_at = services_.clock.now();
    // An agent whose environment was archived meanwhile can still be renamed: only changes are
    // checked.
    const bool moves = change.adapter_type.given || change.adapter_config.given ||
                       change.default_environment_id.given;
    if (moves) BERTH_DO(settle(s, agent, stored));
    BERTH_DO(store::update_agent(s, row));
    BERTH_DO(
        record(s, services_, call,
               {agent.company_id, "agent.updated", "agent", id.str(), changed_fields(change)}));
    ++row.version;
    return row;
  };
  BERTH_CO_TRY(auto row, co_await services_.store.write(work));
  services_.feed.changed(row.value.company_id);
  co_return row;
}

Task<core::Agent> Agents::remove(core::Call call, core::AgentId id) {
  const auto work = [&](store::Session& s) -> Result<core::Agent> {
    BERTH_TRY(auto row, store::find_agent(s, core::Reach::of(call.who), id));
    BERTH_DO(store::delete_agent(s, id));
    BERTH_DO(record(
        s, services_, call,
        {row.value.company_id, "agent.deleted", "agent", id.str(), {{"name", row.value.name}}}));
    return std::move(row.value);
  };
  BERTH_CO_TRY(auto removed, co_await services_.store.write(work));
  services_.feed.changed(removed.company_id);
  // Its homes no longer have rows. Folders that a run uses are removed after that run.
  const Result<> cleaned = co_await homes_.remove_lost();
  if (!cleaned) log::warn("agent.home_not_removed", {{"error", cleaned.error().message}});
  co_return removed;
}

}  // namespace berth::engine
