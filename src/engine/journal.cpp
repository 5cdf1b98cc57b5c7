#include "engine/journal.hpp"

#include "store/activity.hpp"
#include "store/runs.hpp"

namespace berth::engine {

Result<std::optional<core::RunId>> vouched_run(store::Session& session, const core::Call& call,
                                               const core::CompanyId& company) {
  const bool is_proven =
      call.who.kind == core::CallerKind::system || call.run_id == call.who.run_id;
  if (!call.run_id || is_proven) return call.run_id;
  const auto run = store::find_run(session, core::Reach::of(call.who), *call.run_id);
  if (!run && run.error().code != Errc::run_not_found) return std::unexpected(run.error());
  if (!run || run->value.company_id != company) return std::nullopt;
  if (call.who.agent_id && call.who.agent_id != run->value.agent_id) return std::nullopt;
  return call.run_id;
}

Result<> record(store::Session& session, const Services& services, const core::Call& call,
                Entry entry) {
  const Time now = services.clock.now();
  BERTH_TRY(std::optional<core::RunId> run, vouched_run(session, call, entry.company_id));
  return store::insert_activity(session, {.id = core::EventId::make(services.random, now),
                                          .company_id = std::move(entry.company_id),
                                          .actor_type = call.who.actor_type(),
                                          .actor_id = call.who.actor_id(),
                                          .action = std::string{entry.action},
                                          .entity_type = std::string{entry.entity_type},
                                          .entity_id = std::move(entry.entity_id),
                                          .agent_id = call.who.agent_id,
                                          .run_id = std::move(run),
                                          .details = std::move(entry.details),
                                          .created_at = now});
}

}  // namespace berth::engine
