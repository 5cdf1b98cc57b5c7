#include "engine/runs/run_limits.hpp"

#include "base/log.hpp"
#include "engine/journal.hpp"
#include "engine/runs/runs.hpp"

namespace berth::engine {
namespace {

constexpr std::int64_t agent_payload_bytes = std::int64_t{16} << 10;
constexpr std::int64_t agent_prompt_bytes = std::int64_t{64} << 10;
constexpr std::int64_t prompt_bytes = std::int64_t{1} << 20;
constexpr std::int64_t reason_bytes = std::int64_t{4} << 10;

Result<> expect_at_most(std::string_view at, std::size_t bytes, std::int64_t most) {
  const auto given = static_cast<std::int64_t>(bytes);
  if (most == 0 || given <= most) return {};
  const std::string limit = std::to_string(most) + " bytes";
  return std::unexpected(Error{
      Errc::body_too_large,
      std::string{at} + ": has " + std::to_string(given) + " bytes, and the limit is " + limit,
      "send at most " + limit + ": put the data into a file and name it here",
      {{std::string{at}, "is larger than " + limit}}});
}

}  // namespace

std::int64_t agent_payload_bytes_max(const Quota& quota) {
  if (quota.payload_bytes_max == 0) return agent_payload_bytes;
  return std::min(agent_payload_bytes, quota.payload_bytes_max);
}

Result<> check_size(const core::Caller& who, const InvokeAgent& wanted, const Quota& quota) {
  const bool is_agent = who.kind == core::CallerKind::agent_key;
  if (wanted.payload) {
    BERTH_DO(expect_at_most("/payload", encode_text(*wanted.payload).size(),
                            is_agent ? agent_payload_bytes_max(quota) : quota.payload_bytes_max));
  }
  BERTH_DO(expect_at_most("/prompt", wanted.prompt.value_or("").size(),
                          is_agent ? agent_prompt_bytes : prompt_bytes));
  return expect_at_most("/reason", wanted.reason.value_or("").size(), reason_bytes);
}

Task<> expect_calm(Services& services, Guards& guards, core::Call call, core::AgentId agent) {
  if (call.who.kind != core::CallerKind::agent_key) co_return Result<>{};
  BERTH_CO_DO(guards.reserve.expect_room(call.who));
  BERTH_CO_TRY(const InstanceSettings settings, co_await services.store.read(read_settings));
  const std::int64_t per_minute = settings.agent_wakeups_per_minute;
  if (per_minute == 0) co_return Result<>{};
  const core::Rate rate{
      .burst = static_cast<double>(per_minute),
      .every = std::chrono::milliseconds{std::max<std::int64_t>(1, 60'000 / per_minute)}};
  const auto verdict = guards.wakeups.take(agent.str(), rate, services.clock.steady());
  if (verdict == core::RateVerdict::granted) co_return Result<>{};
  if (verdict == core::RateVerdict::first_refusal && call.who.company_id) {
    log::warn("agent.wakeups_limited", {{"agent", agent}, {"perMinute", per_minute}});
    BERTH_CO_DO(co_await services.store.write([&](store::Session& s) {
      return record(s, services, call,
                    {*call.who.company_id,
                     "agent.wakeups_limited",
                     "agent",
                     agent.str(),
                     {{"perMinute", per_minute}}});
    }));
    services.feed.changed(*call.who.company_id);
  }
  co_return fail(Errc::rate_limited,
                 "Agent " + agent.str() + " woke itself more than " + std::to_string(per_minute) +
                     " times a minute",
                 "wait before the next wakeup, or let an administrator raise "
                 "agentWakeupsPerMinute with 'berth settings set'");
}

}  // namespace berth::engine
