#include "http/server/shares.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace berth::http {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

std::string name_of_caller(const core::Caller& caller, std::string_view address) {
  if (caller.agent_id) return "agent " + caller.agent_id->str();
  if (caller.token_id) return "token " + caller.token_id->str();
  if (caller.kind == core::CallerKind::nobody) return "address " + std::string{address};
  return "the local operator";
}

std::string name_of_company(const core::Caller& caller) {
  if (caller.company_id) return "company " + caller.company_id->str();
  if (caller.kind == core::CallerKind::nobody) return "all callers without a key together";
  return "all instance administrators together";
}

std::string_view noun_of(ShareKind kind) {
  switch (kind) {
    case ShareKind::request: return "requests at work";
    case ShareKind::stream: return "streams and sockets open";
    case ShareKind::relay: return "requests into sandboxes open";
  }
  return "";
}

std::string_view remedy_of(ShareKind kind) {
  switch (kind) {
    case ShareKind::request: return "wait for the answers to some of them";
    case ShareKind::stream:
      return "close some of them, or raise streams_per_key and streams_per_company";
    case ShareKind::relay:
      return "wait for some of them, or raise relays_per_key and relays_per_company";
  }
  return "";
}

std::unexpected<Error> used_up(ShareKind kind, const std::string& holder, std::size_t most) {
  return fail(Errc::overloaded,
              holder + " may have " + std::to_string(most) + " " + std::string{noun_of(kind)} +
                  " at a time, and has them",
              std::string{remedy_of(kind)});
}

// The part of a total for callers that may not use its reserve. A total smaller than its reserve
// leaves one.
std::size_t without_reserve(std::size_t all, std::size_t reserved) {
  return std::max<std::size_t>(all - std::min(all, reserved), 1);
}

}  // namespace

Shares::Bounds Shares::bounds_of(ShareKind kind, const core::Caller& caller) const {
  const bool is_admin = caller.is_instance_admin();
  switch (kind) {
    case ShareKind::request: {
      const std::size_t all = limits_.requests_in_flight_max;
      if (is_admin) return {.all = all, .caller = all, .company = all};
      return {.all = without_reserve(all, limits_.requests_reserved),
              .caller = limits_.requests_of_caller_max,
              .company = limits_.requests_of_company_max};
    }
    case ShareKind::stream: {
      const std::size_t half = std::max<std::size_t>(limits_.connections_max / 2, 1);
      if (is_admin) return {.all = unlimited, .caller = half, .company = half};
      return {.all = unlimited,
              .caller = limits_.streams_of_caller_max,
              .company = limits_.streams_of_company_max};
    }
    case ShareKind::relay: {
      const std::size_t all = limits_.relays_max;
      if (is_admin) return {.all = all, .caller = all, .company = all};
      return {.all = without_reserve(all, limits_.relays_reserved),
              .caller = limits_.relays_of_caller_max,
              .company = limits_.relays_of_company_max};
    }
  }
  return {};
}

Result<Shares::Share> Shares::take(ShareKind kind, const core::Caller& caller,
                                   std::string_view address) {
  Pool& pool = pools_[static_cast<std::size_t>(kind)];
  const Bounds bounds = bounds_of(kind, caller);
  if (pool.held >= bounds.all) {
    return fail(Errc::overloaded,
                "the server has as many " + std::string{noun_of(kind)} + " as it can",
                "send the request again a little later");
  }
  Share share{pool, pool.callers.try_emplace(name_of_caller(caller, address)).first,
              pool.companies.try_emplace(name_of_company(caller)).first};
  const std::array looked_at{std::pair{share.caller_, bounds.caller},
                             std::pair{share.company_, bounds.company}};
  for (const auto& [count, most] : looked_at) {
    if (count->second.held <= most) continue;  // this one is among them
    if (std::exchange(count->second.reported, count->second.held) == 0) {
      log::warn("http.share_used_up",
                {{"holder", count->first}, {"kind", name_of(kind)}, {"limit", most}});
    }
    return used_up(kind, count->first, most);
  }
  return share;
}

void Shares::give_back(Counts& counts, Counts::iterator count) {
  Count& held = count->second;
  --held.held;
  if (held.held <= held.reported / 2) held.reported = 0;
  if (held.held == 0) counts.erase(count);
}

Shares::Share::Share(Pool& pool, Counts::iterator caller, Counts::iterator company)
    : pool_(&pool), caller_(caller), company_(company) {
  ++pool.held;
  ++caller_->second.held;
  ++company_->second.held;
}

Shares::Share::Share(Share&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      caller_(other.caller_),
      company_(other.company_) {}

Shares::Share::~Share() {
  if (pool_ == nullptr) return;
  --pool_->held;
  give_back(pool_->callers, caller_);
  give_back(pool_->companies, company_);
}

}  // namespace berth::http
