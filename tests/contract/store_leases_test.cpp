#include "contract/store_fixture.hpp"
#include "store/companies.hpp"
#include "store/nodes.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/runs.hpp"

#include <functional>
#include <set>
#include <thread>

// Leases and sandboxes: their transitions, who may hold what, and what the sweeper finds.
namespace berth::store {
namespace {

using core::LeaseEvent;
using core::LeaseState;
using core::Reach;
using core::SandboxEvent;
using core::SandboxState;

class LeasesAndSandboxes : public StoreContract {
 protected:
  void SetUp() override {
    StoreContract::SetUp();
    if (!database_) return;
    acme_ = given_company();
    box_ = given_environment(acme_->id, "box");
  }

  core::LeaseRecord given(core::LeaseRecord made) {
    EXPECT_WORKS(write([&](Session& s) { return insert_lease(s, made); }));
    return made;
  }
  core::LeaseRecord given(LeaseState state) { return given(lease(*box_, state)); }
  core::Sandbox given(core::Sandbox made) {
    EXPECT_WORKS(write([&](Session& s) { return insert_sandbox(s, made); }));
    return made;
  }
  Stored<core::LeaseRecord> stored(const core::LeaseRecord& lease) {
    auto found =
        read([&](Session& s) { return find_lease_record(s, Reach::only(acme_->id), lease.id); });
    EXPECT_TRUE(found) << found.error().message;
    return *std::move(found);
  }
  Stored<core::Sandbox> stored(const core::Sandbox& sandbox) {
    auto found =
        read([&](Session& s) { return find_sandbox(s, Reach::only(acme_->id), sandbox.id); });
    EXPECT_TRUE(found) << found.error().message;
    return *std::move(found);
  }
  Result<Stored<core::LeaseRecord>> move(const Stored<core::LeaseRecord>& lease, LeaseEvent event) {
    return write([&](Session& s) { return move_lease(s, lease, event, now()); });
  }
  Result<Stored<core::Sandbox>> move(const Stored<core::Sandbox>& sandbox, SandboxEvent event) {
    return write([&](Session& s) { return move_sandbox(s, sandbox, event, now()); });
  }
  std::vector<core::LeaseId> due(std::int64_t limit = 100) {
    std::vector<core::LeaseId> ids;
    for (const auto& row : *read([&](Session& s) { return due_leases(s, here_, now(), limit); })) {
      ids.push_back(row.value.id);
    }
    return ids;
  }
  Result<std::optional<Stored<core::Sandbox>>> claim_idle(const core::Node& node) {
    const SandboxClaim claim{acme_->id, "print", fresh<core::LeaseId>(), node.id};
    return write([&](Session& s) { return claim_idle_sandbox(s, claim, now()); });
  }

  std::optional<core::Company> acme_;
  std::optional<core::Environment> box_;
  const core::NodeId here_ = fresh<core::NodeId>();
};
BERTH_ON_BOTH_ENGINES(LeasesAndSandboxes);

TEST_P(LeasesAndSandboxes, ALeaseComesBackWithAllItsFields) {
  core::LeaseRecord made = lease(*box_, LeaseState::acquiring);
  made.sandbox_id = fresh<core::SandboxId>();
  made.node_id = fresh<core::NodeId>();
  made.driver = core::DriverKind::sandbox;
  made.teardown = {.plugin_id = fresh<core::PluginId>(),
                   .plugin_version = "2",
                   .config = {{"apiKey", "secret-id"}},
                   .state_folder = "abc"};
  made.release_event = LeaseEvent::release_failed;
  made.next_attempt_at = now() + 5;
  given(made);
  EXPECT_EQ(encode_text(stored(made).value), encode_text(made));
  const auto shown = read([&](Session& s) { return find_lease(s, Reach::everything(), made.id); });
  EXPECT_EQ(encode(shown->value).as_object().size(), 19U) << "the wire shows no internal column";
}

TEST_P(LeasesAndSandboxes, OnlyTheMovesOfTheTableAreMade) {
  for (const LeaseState from : all<LeaseState>()) {
    for (const LeaseEvent on : all<LeaseEvent>()) {
      const core::LeaseRecord made = given(from);
      const auto wanted = core::advance(from, on);
      const auto moved = move({made, 1}, on);
      const Stored<core::LeaseRecord> after = stored(made);
      const std::string where = std::string{name_of(from)} + " on " + std::string{name_of(on)};
      EXPECT_EQ(moved.has_value(), wanted.has_value()) << where;
      EXPECT_EQ(after.value.status, wanted.value_or(from)) << where;
      EXPECT_EQ(after.version, wanted ? 2 : 1) << where;
      if (!moved) EXPECT_EQ(moved.error().code, Errc::conflict) << where;
      if (!wanted) continue;
      EXPECT_EQ(after.value.released_at.has_value(), core::is_final(*wanted)) << where;
      EXPECT_EQ(after.value.next_attempt_at.has_value(), *wanted == LeaseState::pending_cleanup)
          << where;
    }
  }
}

TEST_P(LeasesAndSandboxes, WhoReadAnOlderVersionMovesNothing) {
  const Stored<core::LeaseRecord> old = stored(given(LeaseState::active));
  EXPECT_WORKS(move(old, LeaseEvent::release_begun));
  EXPECT_FAILS(move(old, LeaseEvent::retain), Errc::conflict);
  EXPECT_FAILS(write([&](Session& s) { return update_lease(s, old, now()); }), Errc::conflict);
  EXPECT_EQ(stored(old.value).value.status, LeaseState::releasing);
}

TEST_P(LeasesAndSandboxes, NoVerbChangesWhatARowKeepsForLife) {
#ifdef NDEBUG
  GTEST_SKIP() << "only builds with assertions look";
#endif
  const Stored<core::LeaseRecord> row = stored(given(LeaseState::active));
  const core::Environment other = given_environment(acme_->id, "other");
  for (const std::function<void(core::LeaseRecord&)>& change :
       {std::function<void(core::LeaseRecord&)>{
            [&](core::LeaseRecord& lease) { lease.environment_id = other.id; }},
        {[](core::LeaseRecord& lease) { lease.driver = core::DriverKind::plugin; }},
        {[](core::LeaseRecord& lease) { lease.created_at = lease.created_at + 1; }}}) {
    Stored<core::LeaseRecord> changed = row;
    change(changed.value);
    EXPECT_FAILS(move(changed, LeaseEvent::release_begun), Errc::bug);
    EXPECT_FAILS(write([&](Session& s) { return update_lease(s, changed, now()); }), Errc::bug);
  }
  Stored<core::Sandbox> box = stored(given(sandbox(*box_, SandboxState::idle)));
  box.value.provider = "another";
  EXPECT_FAILS(write([&](Session& s) { return update_sandbox(s, box, now()); }), Errc::bug);
  EXPECT_WORKS(move(row, LeaseEvent::release_begun));
}

TEST_P(LeasesAndSandboxes, ASandboxHasOneLiveLease) {
  core::LeaseRecord first = lease(*box_, LeaseState::active);
  first.sandbox_id = fresh<core::SandboxId>();
  given(first);
  core::LeaseRecord second = lease(*box_, LeaseState::acquiring);
  second.sandbox_id = first.sandbox_id;
  const auto insert_second = [&] {
    return write([&](Session& s) { return insert_lease(s, second); });
  };
  EXPECT_FAILS(insert_second(), Errc::conflict);
  const auto holder = read([&](Session& s) { return live_lease_of(s, *first.sandbox_id); });
  EXPECT_EQ((*holder)->value.id, first.id);
  EXPECT_WORKS(move(stored(first), LeaseEvent::release_begun));
  EXPECT_FAILS(insert_second(), Errc::conflict);
  EXPECT_WORKS(move(stored(first), LeaseEvent::release_succeeded));
  EXPECT_WORKS(insert_second());
}

TEST_P(LeasesAndSandboxes, ARunHasOneLiveLease) {
  const core::Run owner = given_run(acme_->id);
  core::LeaseRecord first = lease(*box_, LeaseState::acquiring);
  first.heartbeat_run_id = owner.id;
  given(first);
  core::LeaseRecord second = lease(*box_, LeaseState::acquiring);
  second.heartbeat_run_id = owner.id;
  EXPECT_FAILS(write([&](Session& s) { return insert_lease(s, second); }), Errc::conflict);
  EXPECT_WORKS(move(stored(first), LeaseEvent::teardown_failed));
  given(second);
  EXPECT_EQ(read([&](Session& s) { return leases_of_run(s, owner.id); })->size(), 2U);
}

TEST_P(LeasesAndSandboxes, ALeaseIsDueAtItsTimeAndWhenItExpires) {
  core::LeaseRecord timed = lease(*box_, LeaseState::acquiring);
  timed.next_attempt_at = now() + 20;
  given(timed);
  core::LeaseRecord expiring = lease(*box_, LeaseState::active);
  expiring.expires_at = now() + 10;
  given(expiring);
  given(LeaseState::active);
  given(LeaseState::released);
  EXPECT_TRUE(due().empty());
  clock_.advance(std::chrono::milliseconds{10});
  EXPECT_EQ(due(), std::vector{expiring.id});
  clock_.advance(std::chrono::milliseconds{10});
  EXPECT_EQ(due(), (std::vector{expiring.id, timed.id})) << "the longest overdue first";
  EXPECT_EQ(due(1), std::vector{expiring.id});
  EXPECT_WORKS(move(stored(expiring), LeaseEvent::release_begun));
  EXPECT_WORKS(move(stored(expiring), LeaseEvent::release_expired));
  EXPECT_EQ(due(), std::vector{timed.id});
}

TEST_P(LeasesAndSandboxes, AParkedLeaseStarvesNobodyAndReturnsWhenAsked) {
  const auto park = [&](const core::LeaseRecord& lease) {
    const Stored<core::LeaseRecord> seen = stored(lease);
    return write([&](Session& s) { return park_lease(s, seen, now()); });
  };
  std::vector<core::LeaseRecord> parked;
  for (int i = 0; i < 5; ++i) {
    parked.push_back(given(LeaseState::pending_cleanup));
    EXPECT_WORKS(park(parked.back()));
  }
  clock_.advance(std::chrono::milliseconds{1});
  const core::LeaseRecord waiting = given(LeaseState::pending_cleanup);
  EXPECT_EQ(due(3), std::vector{waiting.id});
  const auto shown = read(
      [&](Session& s) { return list_company_leases(s, acme_->id, {.parked_only = true}, {}); });
  EXPECT_EQ(shown->rows.size(), 5U);

  clock_.advance(std::chrono::milliseconds{1});
  const auto unpark = [&](const core::LeaseRecord& lease) {
    const Stored<core::LeaseRecord> seen = stored(lease);
    return write([&](Session& s) { return unpark_lease(s, seen, now()); });
  };
  EXPECT_WORKS(unpark(parked[0]));
  EXPECT_EQ(due(), (std::vector{waiting.id, parked[0].id}));
  EXPECT_FAILS(unpark(waiting), Errc::conflict);
  EXPECT_FAILS(park(given(LeaseState::released)), Errc::conflict);
}

TEST_P(LeasesAndSandboxes, AClaimedLeaseIsNotDueUntilTheClaimLapses) {
  const core::Node here = given_node();
  const core::LeaseRecord made = given(LeaseState::pending_cleanup);
  const Stored<core::LeaseRecord> seen = stored(made);
  const auto claim = [&](const Stored<core::LeaseRecord>& lease) {
    return write([&](Session& s) { return claim_lease(s, lease, here.id, now() + 100, now()); });
  };
  EXPECT_WORKS(claim(seen));
  EXPECT_TRUE(due().empty());
  EXPECT_FAILS(claim(seen), Errc::conflict);
  EXPECT_FAILS(claim(stored(made)), Errc::conflict);
  clock_.advance(std::chrono::milliseconds{100});
  EXPECT_EQ(due(), std::vector{made.id});
  EXPECT_WORKS(claim(stored(made)));
  const auto ended = move(stored(made), LeaseEvent::cleaned_up);
  ASSERT_TRUE(ended);
  EXPECT_FALSE(ended->value.claimed_by || ended->value.claimed_until);
}

TEST_P(LeasesAndSandboxes, OfSweepersAtTheSameTimeOneGetsEachLease) {
  constexpr int leases = 12;
  constexpr int threads = 4;
  for (int i = 0; i < leases; ++i) given(LeaseState::pending_cleanup);
  std::vector<core::Node> nodes;
  for (int i = 0; i < threads; ++i) nodes.push_back(given_node());
  std::atomic<int> claimed = 0;
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < threads; ++i) {
      pool.emplace_back([&, i] {
        const auto found = read([&](Session& s) { return due_leases(s, here_, now(), leases); });
        for (const auto& row : *found) {
          const auto taken = write(
              [&](Session& s) { return claim_lease(s, row, nodes[i].id, now() + 1000, now()); });
          if (!taken) EXPECT_EQ(name_of(taken.error().code), name_of(Errc::conflict));
          claimed += taken ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(claimed, leases);
}

TEST_P(LeasesAndSandboxes, AnOperatorEndsAnyUnfinishedLease) {
  for (const LeaseState from : all<LeaseState>()) {
    const core::LeaseRecord made = given(from);
    const auto ended = write(
        [&](Session& s) { return force_resolve_lease(s, {made, 1}, "force_resolved", now()); });
    const core::LeaseRecord after = stored(made).value;
    EXPECT_EQ(ended.has_value(), !core::is_final(from)) << name_of(from);
    EXPECT_EQ(after.status, core::is_final(from) ? from : LeaseState::expired) << name_of(from);
    if (!ended) continue;
    EXPECT_EQ(after.failure_reason, "force_resolved");
    EXPECT_EQ(after.cleanup_status, core::CleanupStatus::failed);
    EXPECT_TRUE(after.released_at);
  }
}

TEST_P(LeasesAndSandboxes, TheLeasesOfACompanyAreFiltered) {
  given(LeaseState::active);
  given(LeaseState::failed);
  const core::Company other = given_company("Other");
  given(lease(given_environment(other.id, "x"), LeaseState::active));
  const auto count = [&](const LeaseFilter& filter) {
    return read([&](Session& s) { return list_company_leases(s, acme_->id, filter, {}); })
        ->rows.size();
  };
  EXPECT_EQ(count({}), 2U);
  EXPECT_EQ(count({.status = LeaseState::active}), 1U);
  EXPECT_EQ(count({.environment_id = box_->id}), 2U);
  EXPECT_EQ(count({.parked_only = true}), 0U);
}

TEST_P(LeasesAndSandboxes, ADeletedEnvironmentLeavesWhatTeardownNeeds) {
  core::LeaseRecord held = lease(*box_, LeaseState::active);
  held.node_id = fresh<core::NodeId>();
  held.teardown.config = {{"apiKey", "secret-id"}};
  given(held);
  core::Sandbox made = sandbox(*box_, SandboxState::leased);
  made.lease_id = held.id;
  given(made);
  EXPECT_TRUE(*write([&](Session& s) { return delete_environment(s, box_->id); }));
  EXPECT_FALSE(stored(held).value.environment_id);
  EXPECT_EQ(stored(held).value.teardown, held.teardown);
  EXPECT_EQ(read([&](Session& s) { return leases_of_node(s, *held.node_id, 9); })->size(), 1U);
  EXPECT_FALSE(stored(made).value.environment_id);
  EXPECT_EQ(stored(made).value.config, made.config);
  EXPECT_WORKS(move(stored(held), LeaseEvent::release_begun));
}

TEST_P(LeasesAndSandboxes, ACompanyWithASandboxStaysUntilItIsGone) {
  const core::Sandbox made = given(sandbox(*box_, SandboxState::idle));
  const auto remove = [&] {
    return write([&](Session& s) { return delete_company(s, acme_->id); });
  };
  EXPECT_FAILS(remove(), Errc::company_in_use);
  EXPECT_WORKS(move(stored(made), SandboxEvent::vanished));
  given(LeaseState::released);
  EXPECT_WORKS(remove());
  EXPECT_EQ(number("select (select count(*) from sandboxes)"
                   " + (select count(*) from environment_leases)"),
            0);
}

TEST_P(LeasesAndSandboxes, ACompanyStaysWhileItHasATemplate) {
  const std::string insert =
      "insert into templates (id, company_id, name, provider, kind, binding, expendable, status, "
      "config, metadata, attempts, created_at, updated_at, version) values ('t', '" +
      acme_->id.str() + "', 'base', 'linux', 'snapshot', '', 0, 'ready', '{}', '{}', 0, 1, 1, 1)";
  EXPECT_WORKS(write([&](Session& s) { return s.run(insert, {}); }));
  const auto remove = [&] {
    return write([&](Session& s) { return delete_company(s, acme_->id); });
  };
  EXPECT_FAILS(remove(), Errc::company_in_use);
  EXPECT_WORKS(
      write([](Session& s) { return s.run("update templates set status = 'deleted'", {}); }));
  EXPECT_WORKS(remove());
}

TEST_P(LeasesAndSandboxes, OnlyTheMovesOfASandboxThatTheTableHasAreMade) {
  for (const SandboxState from : all<SandboxState>()) {
    for (const SandboxEvent on : all<SandboxEvent>()) {
      const core::Sandbox made = given(sandbox(*box_, from));
      const auto wanted = core::advance(from, on);
      const auto moved = move({made, 1}, on);
      const Stored<core::Sandbox> after = stored(made);
      const std::string where = std::string{name_of(from)} + " on " + std::string{name_of(on)};
      EXPECT_EQ(moved.has_value(), wanted.has_value()) << where;
      EXPECT_EQ(after.value.status, wanted.value_or(from)) << where;
      EXPECT_EQ(after.version, wanted ? 2 : 1) << where;
      if (wanted)
        EXPECT_EQ(after.value.next_attempt_at.has_value(), *wanted == SandboxState::destroying)
            << where;
      else
        EXPECT_EQ(encode_text(after.value), encode_text(made)) << where;
    }
  }
}

TEST_P(LeasesAndSandboxes, AnIdleSandboxWithTheSameFingerprintIsReusedTheFreshestFirst) {
  const core::Node here = given_node();
  core::Sandbox foreign = sandbox(*box_, SandboxState::idle);
  foreign.fingerprint = "another";
  given(foreign);
  core::Sandbox expired = sandbox(*box_, SandboxState::idle);
  expired.expires_at = now();
  given(expired);
  EXPECT_FALSE(*claim_idle(here));
  given(sandbox(*box_, SandboxState::idle));
  clock_.advance(std::chrono::milliseconds{1});
  const core::Sandbox freshest = given(sandbox(*box_, SandboxState::idle));
  const auto claimed = claim_idle(here);
  ASSERT_TRUE(claimed && *claimed);
  EXPECT_EQ((*claimed)->value.id, freshest.id);
  EXPECT_EQ((*claimed)->value.status, SandboxState::leased);
  EXPECT_EQ(stored(freshest).value.lease_id, (*claimed)->value.lease_id);
  const auto back = move(**claimed, SandboxEvent::given_back);
  EXPECT_FALSE(back->value.lease_id);
  const auto idle = read(
      [&](Session& s) { return list_sandboxes(s, acme_->id, {.status = SandboxState::idle}, {}); });
  EXPECT_EQ(idle->rows.size(), 4U);
}

TEST_P(LeasesAndSandboxes, OfTwoThatClaimASandboxOneGetsIt) {
  constexpr int boxes = 5;
  constexpr int threads = 8;
  for (int i = 0; i < boxes; ++i) given(sandbox(*box_, SandboxState::idle));
  const core::Node here = given_node();
  std::vector<SandboxClaim> claims;
  for (int i = 0; i < threads; ++i) {
    claims.push_back({acme_->id, "print", fresh<core::LeaseId>(), here.id});
  }
  std::vector<std::string> got(threads);
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < threads; ++i) {
      pool.emplace_back([&, i] {
        const auto claimed =
            write([&](Session& s) { return claim_idle_sandbox(s, claims[i], now()); });
        EXPECT_TRUE(claimed) << claimed.error().message;
        if (claimed && *claimed) got[i] = (*claimed)->value.id.str();
      });
    }
  }
  std::set<std::string> seen;
  int total = 0;
  for (const std::string& id : got) {
    if (id.empty()) continue;
    ++total;
    seen.insert(id);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(total)) << "a sandbox was given twice";
  EXPECT_EQ(total, boxes);
}

TEST_P(LeasesAndSandboxes, WhatStaysOnItsServerIsClaimedThereAlone) {
  const core::Node here = given_node();
  const core::Node there = given_node();
  core::Sandbox idle = sandbox(*box_, SandboxState::idle);
  idle.node_id = there.id;
  given(idle);
  const auto claim = [&](const core::Node& node) {
    const SandboxClaim wanted{.company_id = acme_->id,
                              .fingerprint = "print",
                              .lease_id = fresh<core::LeaseId>(),
                              .node_id = node.id,
                              .must_be_own = true};
    return write([&](Session& s) { return claim_idle_sandbox(s, wanted, now()); });
  };
  EXPECT_FALSE(claim(here)->has_value());
  EXPECT_TRUE(claim(there)->has_value());
}

TEST_P(LeasesAndSandboxes, ASandboxIsDueWhenItExpiresAndWhileItIsBeingDestroyed) {
  const core::Node here = given_node();
  core::Sandbox pooled = sandbox(*box_, SandboxState::creating);
  pooled.expires_at = now() + 10;
  given(pooled);
  EXPECT_WORKS(move(stored(pooled), SandboxEvent::given_back));
  const auto due_boxes = [&] {
    return read([&](Session& s) { return due_sandboxes(s, here.id, now(), 9); })->size();
  };
  EXPECT_EQ(due_boxes(), 0U);
  clock_.advance(std::chrono::milliseconds{10});
  EXPECT_EQ(due_boxes(), 1U);
  const auto begun = move(stored(pooled), SandboxEvent::destroy_begun);
  const auto claim = [&] {
    return write(
        [&](Session& s) { return claim_due_sandbox(s, *begun, here.id, now() + 50, now()); });
  };
  EXPECT_WORKS(claim());
  EXPECT_FAILS(claim(), Errc::conflict);
  EXPECT_EQ(due_boxes(), 0U);
  EXPECT_EQ(stored(pooled).value.attempts, 1);
  clock_.advance(std::chrono::milliseconds{50});
  EXPECT_EQ(due_boxes(), 1U);
  const auto parked =
      write([seen = stored(pooled), this](Session& s) { return park_sandbox(s, seen, now()); });
  ASSERT_TRUE(parked);
  EXPECT_EQ(due_boxes(), 0U);
  EXPECT_WORKS(write([&](Session& s) { return unpark_sandbox(s, *parked, now()); }));
  EXPECT_EQ(due_boxes(), 1U);
  EXPECT_WORKS(move(stored(pooled), SandboxEvent::destroyed));
  EXPECT_EQ(due_boxes(), 0U);
}

}  // namespace
}  // namespace berth::store
