// Egress of a leased place: what it may reach, and what it has requested.
#include "base/json/peek.hpp"
#include "engine/environments/allowed_places.hpp"
#include "engine/journal.hpp"
#include "engine/leases/abilities.hpp"
#include "engine/leases/held_lease.hpp"
#include "engine/leases/lease_lifecycle.hpp"
#include "engine/leases/leases.hpp"

namespace berth::engine {
namespace {

using places::Lack;

constexpr std::chrono::milliseconds egress_wait_max{60'000};
constexpr std::chrono::milliseconds egress_look_every{500};

bj::object* config_in(core::LeaseRecord& lease) {
  if (!lease.metadata) return nullptr;
  const auto config = lease.metadata->find("config");
  return config != lease.metadata->end() ? config->value().if_object() : nullptr;
}

bj::object policy_in(const core::LeaseRecord& lease) {
  return peek<bj::object>(peek<bj::object>(lease.metadata, "config"), "egress")
      .value_or(bj::object{});
}

// As a config stores it: absent fields are omitted.
bj::object stored(const core::LinuxEgress& policy) {
  bj::object out;
  for (const auto& [key, value] : encode(policy).as_object()) {
    if (!value.is_null()) out.emplace(key, value);
  }
  return out;
}

}  // namespace

Task<LeaseEgress> Leases::egress(core::Call call, core::LeaseId id, std::uint64_t offset,
                                 std::chrono::milliseconds wait) {
  const Clock::Steady limit = services_.clock.steady() + std::min(wait, egress_wait_max);
  for (;;) {
    BERTH_CO_TRY(const Held held, co_await look_into(call, id));
    BERTH_CO_TRY(places::EgressRules* const rules, need<Lack::egress>(held.place, held.facts));
    BERTH_CO_TRY(places::EgressPage page, co_await rules->egress_log(held.facts, offset));
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(limit - services_.clock.steady());
    if (!page.entries.empty() || left.count() <= 0) {
      co_return LeaseEgress{.policy = policy_in(held.lease),
                            .entries = std::move(page.entries),
                            .next_offset = page.next_offset};
    }
    // A company change may be a policy change; the log itself sends no notification when it grows.
    BERTH_CO_DO(
        co_await services_.feed.wait(held.lease.company_id, std::min(left, egress_look_every)));
  }
}

Task<LeaseEgress> Leases::set_egress(core::Call call, core::LeaseId id, core::LinuxEgress policy) {
  BERTH_CO_DO(core::check_rule_count(policy));
  // Checked first, so that an unreadable rule or a place without a gateway changes nothing.
  BERTH_CO_TRY(const Held held, co_await look_into(call, id));
  BERTH_CO_DO(co_await services_.store.read([&](store::Session& s) {
    core::LeaseRecord wanted = held.lease;
    wanted.teardown.config["egress"] = stored(policy);
    return expect_allowed(s, services_, wanted);
  }));
  BERTH_CO_TRY(places::EgressRules* const rules, need<Lack::egress>(held.place, held.facts));
  BERTH_CO_DO(co_await rules->set_egress(held.facts, policy));
  const auto save = [&](store::Session& s) -> Result<LeaseLifecycle::Row> {
    const Time now = services_.clock.now();
    BERTH_TRY(auto row, store::find_lease_record(s, core::Reach::of(call.who), id));
    BERTH_DO(expect_held(s, row.value, work_.node()));
    bj::object* const config = config_in(row.value);
    if (config == nullptr) return fail(Errc::conflict, "Lease " + id.str() + " has no config");
    Entry entry{row.value.company_id,
                "environment.lease_egress_changed",
                "environment_lease",
                id.str(),
                {{"from", policy_in(row.value)}, {"to", stored(policy)}}};
    (*config)["egress"] = stored(policy);
    BERTH_DO(record(s, services_, call, std::move(entry)));
    return store::update_lease(s, std::move(row), now);
  };
  BERTH_CO_TRY(const auto row, co_await services_.store.write(save));
  services_.feed.changed(row.value.company_id);
  co_return LeaseEgress{.policy = policy_in(row.value)};
}

}  // namespace berth::engine
