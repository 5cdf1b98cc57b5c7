#pragma once

#include "core/call.hpp"
#include "engine/services.hpp"

namespace berth::engine {

// One audit trail entry. `details` names fields and counts, never raw config or a secret.
struct Entry {
  core::CompanyId company_id;
  std::string_view action;
  std::string_view entity_type;
  std::string entity_id;
  bj::object details = {};
};

// The verified run that a caller acts for: a run of this company and, for an agent, one of its own.
// Any other run named in a header is dropped, so that a caller cannot attribute its actions to
// another's run.
Result<std::optional<core::RunId>> vouched_run(store::Session& session, const core::Call& call,
                                               const core::CompanyId& company);

// Part of the transaction that makes the change: both are stored, or neither.
Result<> record(store::Session& session, const Services& services, const core::Call& call,
                Entry entry);

}  // namespace berth::engine
