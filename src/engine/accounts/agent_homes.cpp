#include "engine/accounts/agent_homes.hpp"

#include "base/fault_point.hpp"
#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"
#include "engine/journal.hpp"
#include "engine/retry.hpp"
#include "store/agent_homes.hpp"
#include "store/agents.hpp"

namespace berth::engine {
namespace {

constexpr std::chrono::seconds clean_every{20};

std::string config_text(const bj::object& config, std::string_view key) {
  const auto value = peek<bj::value>(config, key);
  if (!value) return {};
  return value->is_string() ? std::string{value->get_string()} : encode_text(*value);
}

// Where the files of a home are. The session of another host or user cannot be gone on with.
std::string home_place(const core::Environment& environment, const std::string& disk) {
  if (environment.driver != core::DriverKind::ssh) return disk;
  return "ssh:" + config_text(environment.config, "username") + "@" +
         config_text(environment.config, "host") + ":" + config_text(environment.config, "port");
}

}  // namespace

bool is_on_disk(const core::AgentHome& home, const std::string& disk) {
  return !disk.empty() && home.place == disk;
}

Result<std::optional<core::AgentHomeId>> home_for(store::Session& session, Services& services,
                                                  const core::Agent& agent,
                                                  const core::Environment& environment,
                                                  const std::string& disk) {
  if (!core::keeps_sessions(agent.adapter_type)) return std::nullopt;
  const Time now = services.clock.now();
  const core::AgentHome wanted{.id = core::AgentHomeId::make(services.random, now),
                               .company_id = agent.company_id,
                               .agent_id = agent.id,
                               .environment_id = environment.id,
                               .place = home_place(environment, disk),
                               .used_at = now,
                               .created_at = now,
                               .updated_at = now};
  BERTH_TRY(const core::AgentHome home, store::find_or_insert_home(session, wanted));
  return std::optional{home.id};
}

Task<> remove_lost_homes(Services& services, const HomeDisk& disk) {
  BERTH_CO_TRY(const std::vector<core::AgentHomeId> there, co_await disk.list());
  for (const core::AgentHomeId& id : there) {
    // The folder is created after the row, so a folder without a row belongs to a deleted one.
    BERTH_CO_TRY(const bool is_lost,
                 co_await services.store.read([&](store::Session& s) -> Result<bool> {
                   BERTH_TRY(const auto home, store::find_home(s, id));
                   if (home) return false;
                   BERTH_TRY(const auto user, store::user_of_home(s, id));
                   return !user;
                 }));
    if (!is_lost) continue;
    fault_point("agent_homes.lost");
    BERTH_CO_DO(co_await disk.remove(id));
    log::info("agent.home_removed", {{"home", id}});
  }
  co_return Result<>{};
}

Task<AgentReset> AgentHomes::reset(core::Call call, core::AgentId agent, ResetAgent what) {
  const auto work = [&](store::Session& s) -> Result<std::pair<AgentReset, core::CompanyId>> {
    BERTH_TRY(const auto row, store::find_agent(s, core::Reach::of(call.who), agent));
    BERTH_TRY(const auto homes, store::homes_of_agent(s, agent, what.environment_id));
    AgentReset done{.agent_id = agent};
    for (const core::AgentHome& home : homes) {
      BERTH_TRY(const auto user, store::user_of_home(s, home.id));
      if (user) {
        return fail(Errc::conflict,
                    "Agent " + row.value.name + " works in its home now, with lease " + user->str(),
                    "wait until its runs have ended, or cancel them, and repeat");
      }
      BERTH_DO(store::delete_home(s, home.id));
      ++done.homes;
    }
    BERTH_DO(record(s, services_, call,
                    {row.value.company_id,
                     "agent.reset",
                     "agent",
                     agent.str(),
                     {{"name", row.value.name}, {"homes", done.homes}}}));
    return std::pair{done, row.value.company_id};
  };
  BERTH_CO_TRY(const auto done, co_await services_.store.write(work));
  fault_point("agent_homes.reset");
  services_.feed.changed(done.second);
  const Result<> removed = co_await remove_lost();
  // The rows are deleted, so the next round removes what is left.
  if (!removed) log::warn("agent.home_not_removed", {{"error", removed.error().message}});
  co_return done.first;
}

Task<std::vector<core::AgentHome>> AgentHomes::list(core::Call call, core::AgentId agent) {
  using Homes = std::vector<core::AgentHome>;
  co_return co_await services_.store.read([&](store::Session& s) -> Result<Homes> {
    BERTH_DO(store::find_agent(s, core::Reach::of(call.who), agent));
    return store::homes_of_agent(s, agent, std::nullopt);
  });
}

Task<> AgentHomes::keep_clean(asio::any_io_executor executor) {
  while (true) {
    const Result<> done = co_await remove_lost();
    if (!done) log::warn("agent.home_not_removed", {{"error", done.error().message}});
    BERTH_CO_DO(co_await pause_for(executor, clean_every));
  }
}

Task<> AgentHomes::remove_lost() {
  co_return disk_ != nullptr ? co_await remove_lost_homes(services_, *disk_) : Result<>{};
}

}  // namespace berth::engine
