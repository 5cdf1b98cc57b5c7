#pragma once

#include "core/call.hpp"
#include "engine/means.hpp"

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

// Part of the transaction that makes the change: either both are there or neither.
Result<> record(store::Session& session, const Means& means, const core::Call& call, Entry entry);

}  // namespace berth::engine
