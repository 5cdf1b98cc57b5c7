#pragma once

#include "core/rows/lease.hpp"
#include "engine/journal.hpp"

// What is written down of a lease.
namespace berth::engine {

// The server itself, at work for the lease's run.
core::Call call_of(const core::LeaseRecord& lease);
Entry entry_of(const core::LeaseRecord& lease, std::string_view action);

}  // namespace berth::engine
