#pragma once

#include "core/rows/lease.hpp"
#include "engine/journal.hpp"

// Records about a lease.
namespace berth::engine {

// A call by the server itself, on behalf of the lease's run.
core::Call call_of(const core::LeaseRecord& lease);
// The same, on behalf of a company.
core::Call system_call(const core::CompanyId& company);
Entry entry_of(const core::LeaseRecord& lease, std::string_view action);

}  // namespace berth::engine
