#pragma once

#include "core/call.hpp"
#include "engine/services.hpp"

namespace berth::engine {

// One line for the audit trail. `details` names fields and counts, never raw config and never a
// secret.
struct Entry {
  core::CompanyId company_id;
  std::string_view action;
  std::string_view entity_type;
  std::string entity_id;
  bj::object details = {};
};

// The run on whose behalf a caller acts, as far as that is more than its word: a run of this
// company and, for an agent, one of its own. Anything else that a header field names is left out,
// so that nobody lays an act at the door of another's run.
Result<std::optional<core::RunId>> vouched_run(store::Session& session, const core::Call& call,
                                               const core::CompanyId& company);

// Part of the transaction that makes the change: either both are there or neither.
Result<> record(store::Session& session, const Services& services, const core::Call& call,
                Entry entry);

}  // namespace berth::engine
