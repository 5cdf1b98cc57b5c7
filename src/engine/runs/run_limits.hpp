#pragma once

#include "core/rate_limit.hpp"
#include "engine/accounts/quotas.hpp"
#include "engine/upkeep/disk_reserve.hpp"

namespace berth::engine {

struct InvokeAgent;

// Protects the resources that all companies share.
struct Guards {
  DiskReserve reserve;
  Quotas quotas;
  core::RateLimit wakeups = {};
};

// The payload limit for an agent's own next turn: enough for instructions, too little to store
// data.
std::int64_t agent_payload_bytes_max(const Quota& quota);
// body_too_large, with the field and the limit.
Result<> check_size(const core::Caller& who, const InvokeAgent& wanted, const Quota& quota);

// Before an agent wakes itself: store_full when the disk is down to its reserve, rate_limited when
// it wakes itself in a loop. The first refusal of a loop is recorded as an activity.
Task<> expect_calm(Services& services, Guards& guards, core::Call call, core::AgentId agent);

}  // namespace berth::engine
