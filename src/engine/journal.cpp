#include "engine/journal.hpp"

#include "store/activity.hpp"

namespace berth::engine {

Result<> record(store::Session& session, const Means& means, const core::Call& call, Entry entry) {
  const Time now = means.clock.now();
  return store::insert_activity(session, {.id = core::EventId::make(means.random, now),
                                          .company_id = std::move(entry.company_id),
                                          .actor_type = call.who.actor_type(),
                                          .actor_id = call.who.actor_id(),
                                          .action = std::string{entry.action},
                                          .entity_type = std::string{entry.entity_type},
                                          .entity_id = std::move(entry.entity_id),
                                          .agent_id = call.who.agent_id,
                                          .run_id = call.run_id,
                                          .details = std::move(entry.details),
                                          .created_at = now});
}

}  // namespace berth::engine
