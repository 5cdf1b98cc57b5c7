#include "contract/store_fixture.hpp"
#include "store/nodes.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/runs.hpp"

#include <thread>

// Nodes: which are alive, and that a dead one changes nothing.
namespace berth::store {
namespace {

using core::Reach;

class Nodes : public StoreContract {
 protected:
  Result<> beat(const core::Node& node) {
    return write([&](Session& s) { return heartbeat_node(s, node.id, now()); });
  }
  Result<std::vector<core::Node>> fence(const core::Node& by) {
    return write([&](Session& s) {
      return fence_silent_nodes(s, by.id, now() + -core::heartbeat_silence_max_ms, now());
    });
  }
  // Later than any node may be silent; only these have sent a heartbeat since.
  void fall_silent_except(const core::Node& node) {
    clock_.advance(std::chrono::milliseconds{core::heartbeat_silence_max_ms + 1});
    EXPECT_WORKS(beat(node));
  }
};
BERTH_ON_BOTH_ENGINES(Nodes);

TEST_P(Nodes, ASilentNodeIsFencedOnceAndLearnsIt) {
  const core::Node here = given_node();
  const core::Node there = given_node();
  EXPECT_TRUE(fence(here)->empty());
  fall_silent_except(here);
  const auto fenced = fence(here);
  ASSERT_EQ(fenced->size(), 1U);
  EXPECT_EQ(fenced->front().id, there.id);
  EXPECT_EQ(fenced->front().fenced_at, now());
  EXPECT_TRUE(fence(here)->empty());
  EXPECT_FAILS(beat(there), Errc::conflict);
  EXPECT_FAILS(write([&](Session& s) { return expect_node_alive(s, there.id); }), Errc::conflict);
  EXPECT_WORKS(write([&](Session& s) { return expect_node_alive(s, here.id); }));
  const auto alive = read([&](Session& s) { return alive_nodes(s); });
  ASSERT_EQ(alive->size(), 1U);
  EXPECT_EQ(encode_text(alive->front().version), "\"1.2.3\"");
}

TEST_P(Nodes, AFencedNodeFencesNobody) {
  const core::Node here = given_node();
  const core::Node there = given_node();
  fall_silent_except(here);
  EXPECT_WORKS(fence(here));
  clock_.advance(std::chrono::hours{1});
  EXPECT_FAILS(fence(there), Errc::conflict);
  EXPECT_WORKS(beat(here));
}

TEST_P(Nodes, ANodeThatBeatsMeanwhileIsNotFenced) {
  const core::Node seen = given_node();
  clock_.advance(std::chrono::seconds{1});
  EXPECT_WORKS(beat(seen));
  EXPECT_FALSE(*write([&](Session& s) { return fence_node(s, seen, now()); }));
  EXPECT_WORKS(beat(seen));
}

TEST_P(Nodes, OfTwoThatFenceANodeOneDoes) {
  const core::Node silent = given_node();
  std::atomic<int> fenced = 0;
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < 4; ++i) {
      pool.emplace_back([&] {
        const auto done = write([&](Session& s) { return fence_node(s, silent, now()); });
        EXPECT_TRUE(done) << done.error().message;
        fenced += done && *done ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(fenced, 1);
}

TEST_P(Nodes, AnUnknownNodeIsNotAlive) {
  EXPECT_FAILS(beat(node()), Errc::conflict);
  EXPECT_FAILS(write([&](Session& s) { return expect_node_alive(s, node().id); }), Errc::conflict);
}

// What a node held when it fell silent: other nodes find it, and the node itself can no longer
// reach it.
class LostNode : public Nodes {
 protected:
  void SetUp() override {
    Nodes::SetUp();
    if (!database_) return;
    const core::Company acme = given_company();
    const core::Environment box = given_environment(acme.id, "box");
    here_ = given_node();
    lost_ = given_node();
    held_.emplace(lease(box, core::LeaseState::active));
    held_->node_id = lost_->id;
    half_made_.emplace(sandbox(box, core::SandboxState::creating));
    half_made_->node_id = lost_->id;
    given_run(acme.id);
    EXPECT_WORKS(write([&](Session& s) -> Result<> {
      BERTH_DO(insert_lease(s, *held_));
      BERTH_DO(insert_sandbox(s, *half_made_));
      BERTH_TRY(auto claimed, claim_runs(s, lost_->id, {}, 1, now()));
      run_ = claimed.at(0);
      return {};
    }));
  }
  void lose() {
    fall_silent_except(*here_);
    EXPECT_EQ(fence(*here_)->size(), 1U);
  }

  std::optional<core::Node> here_;
  std::optional<core::Node> lost_;
  std::optional<core::LeaseRecord> held_;
  std::optional<core::Sandbox> half_made_;
  std::optional<Stored<core::Run>> run_;
};
BERTH_ON_BOTH_ENGINES(LostNode);

TEST_P(LostNode, WhatItHeldIsDueForOthersOnlyOnceItIsFenced) {
  const auto leases = [&] {
    return read([&](Session& s) { return due_leases(s, here_->id, now(), 9); });
  };
  const auto boxes = [&] {
    return read([&](Session& s) { return due_sandboxes(s, here_->id, now(), 9); });
  };
  const auto runs = [&] { return read([&](Session& s) { return orphaned_runs(s, 9); }); };
  EXPECT_TRUE(leases()->empty() && boxes()->empty() && runs()->empty());
  lose();
  ASSERT_EQ(leases()->size(), 1U);
  EXPECT_EQ(leases()->front().value.id, held_->id);
  ASSERT_EQ(boxes()->size(), 1U);
  EXPECT_EQ(boxes()->front().value.id, half_made_->id);
  ASSERT_EQ(runs()->size(), 1U);
  EXPECT_EQ(runs()->front().value.id, run_->value.id);
}

TEST_P(LostNode, WhatIsDueIsLeftToItWhileItIsAlive) {
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_TRY(auto row, find_lease_record(s, core::Reach::everything(), held_->id));
    row.value.next_attempt_at = now();
    BERTH_DO(update_lease(s, std::move(row), now()));
    return {};
  }));
  const auto due_for = [&](const core::Node& node) {
    return read([&](Session& s) { return due_leases(s, node.id, now(), 9); })->size();
  };
  EXPECT_EQ(due_for(*here_), 0U);
  EXPECT_EQ(due_for(*lost_), 1U);
  lose();
  EXPECT_EQ(due_for(*here_), 1U);
}

TEST_P(LostNode, WhatItHeldIsInheritedByTheNextNodeOfItsHome) {
  const core::Node heir = given_node();
  EXPECT_WORKS(write([&](Session& s) { return inherit(s, lost_->id, heir.id); }));
  const auto lease =
      read([&](Session& s) { return find_lease_record(s, core::Reach::everything(), held_->id); });
  EXPECT_EQ(lease->value.node_id, heir.id);
  const auto box =
      read([&](Session& s) { return find_sandbox(s, core::Reach::everything(), half_made_->id); });
  EXPECT_EQ(box->value.node_id, heir.id);
  EXPECT_EQ(read([&](Session& s) { return leases_of_node(s, heir.id, 9); })->size(), 1U);
}

TEST_P(LostNode, WhatItWasAboutToSweepIsTakenByOthersAtOnce) {
  const Time far = now() + 3'600'000;
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_TRY(auto row, find_lease_record(s, core::Reach::everything(), held_->id));
    row.value.next_attempt_at = now();
    BERTH_TRY(row, update_lease(s, std::move(row), now()));
    BERTH_DO(claim_lease(s, std::move(row), lost_->id, far, now()));
    return {};
  }));
  EXPECT_TRUE(read([&](Session& s) { return due_leases(s, here_->id, now(), 9); })->empty());
  lose();
  EXPECT_EQ(read([&](Session& s) { return due_leases(s, here_->id, now(), 9); })->size(), 1U);
}

TEST_P(LostNode, ItCannotMoveAnythingWhenItComesBack) {
  lose();
  const auto as_lost = [&](auto verb) {
    return write([&](Session& s) -> Result<> {
      BERTH_DO(expect_node_alive(s, lost_->id));
      BERTH_DO(verb(s));
      return {};
    });
  };
  const Stored<core::LeaseRecord> lease_seen{*held_, 1};
  const Stored<core::Sandbox> box_seen{*half_made_, 1};
  using core::LeaseEvent;
  using core::RunEvent;
  using core::SandboxEvent;
  EXPECT_FAILS(as_lost([&](Session& s) { return move_run(s, *run_, RunEvent::started, now()); }),
               Errc::conflict);
  EXPECT_FAILS(as_lost([&](Session& s) {
                 return move_lease(s, lease_seen, LeaseEvent::release_begun, now());
               }),
               Errc::conflict);
  EXPECT_FAILS(as_lost([&](Session& s) { return claim_runs(s, lost_->id, {}, 1, now()); }),
               Errc::conflict);
  // Even without checking: the leases and sandboxes have another version since.
  EXPECT_FAILS(write([&](Session& s) {
                 return move_lease(s, lease_seen, LeaseEvent::release_begun, now());
               }),
               Errc::conflict);
  EXPECT_FAILS(
      write([&](Session& s) { return move_sandbox(s, box_seen, SandboxEvent::created, now()); }),
      Errc::conflict);
  EXPECT_EQ(number("select count(*) from heartbeat_runs where status = 'starting'"), 1);
  EXPECT_EQ(number("select count(*) from environment_leases where status = 'active'"), 1);
  EXPECT_EQ(number("select count(*) from sandboxes where status = 'creating'"), 1);
}

TEST_P(LostNode, AnotherNodeAdoptsItsRun) {
  lose();
  auto orphan = read([&](Session& s) { return orphaned_runs(s, 1); })->at(0);
  orphan.value.node_id = here_->id;
  EXPECT_WORKS(write([&](Session& s) { return update_run(s, orphan, now()); }));
  EXPECT_TRUE(read([&](Session& s) { return orphaned_runs(s, 1); })->empty());
  EXPECT_EQ(read([&](Session& s) { return runs_of_node(s, here_->id, 9); })->size(), 1U);
  EXPECT_FAILS(
      write([&](Session& s) { return move_run(s, *run_, core::RunEvent::started, now()); }),
      Errc::conflict);
}

TEST_P(LostNode, RemainsWhileATemplateOrASetupSessionNamesIt) {
  const auto prune = [&] {
    return *write([&](Session& s) { return prune_nodes(s, now() + 1'000'000, 10); });
  };
  lose();
  const std::string company = held_->company_id.str();
  const std::string environment = held_->environment_id->str();
  const std::string node = "'" + lost_->id.str() + "'";
  const std::string times = "1, 1, 1)";
  for (const std::string& step : {
           std::string{"update heartbeat_runs set status = 'interrupted'"},
           std::string{"update environment_leases set status = 'expired'"},
           std::string{"update sandboxes set status = 'lost'"},
           "insert into templates (id, company_id, name, provider, kind, binding, node_id, "
           "expendable, status, config, metadata, attempts, created_at, updated_at, version) "
           "values ('t', '" +
               company + "', 'base', 'linux', 'snapshot', '', " + node +
               ", 0, 'ready', '{}', '{}', 0, " + times,
           "insert into setup_sessions (id, company_id, environment_id, provider, "
           "environment_lease_id, status, started_by, node_id, expires_at, created_at, "
           "updated_at, version) values ('s', '" +
               company + "', '" + environment +
               "', 'linux', 'l', 'waiting_for_user', 'operator', " + node + ", 1, " + times,
       }) {
    EXPECT_WORKS(write([&](Session& s) { return s.run(step, {}); }));
  }
  EXPECT_EQ(prune(), 0) << "a template and a setup session name it";
  EXPECT_WORKS(write(
      [](Session& s) { return s.run("update setup_sessions set status = 'cancelled'", {}); }));
  EXPECT_EQ(prune(), 0) << "a template names it";
  EXPECT_WORKS(
      write([](Session& s) { return s.run("update templates set status = 'deleted'", {}); }));
  EXPECT_EQ(prune(), 1);
}

TEST_P(LostNode, ItIsForgottenOnceItHoldsNothingAndItsTimeIsUp) {
  const auto prune = [&](Time before) {
    return *write([&](Session& s) { return prune_nodes(s, before, 10); });
  };
  const Time later = now() + 1'000'000;
  EXPECT_EQ(prune(later), 0) << "nobody is fenced yet";
  lose();
  EXPECT_EQ(prune(later), 0) << "it has a run, a lease and a sandbox";
  for (const char* end : {"update heartbeat_runs set status = 'interrupted'",
                          "update environment_leases set status = 'expired'",
                          "update sandboxes set status = 'lost'"}) {
    EXPECT_EQ(prune(later), 0) << "before " << end;
    EXPECT_WORKS(write([&](Session& s) { return s.run(end, {}); }));
  }
  EXPECT_EQ(prune(now()), 0) << "it was fenced just now";
  EXPECT_EQ(prune(later), 1);
  EXPECT_EQ(number("select count(*) from nodes"), 1) << "who lives stays";
  EXPECT_FAILS(write([&](Session& s) { return expect_node_alive(s, lost_->id); }), Errc::conflict);
}

}  // namespace
}  // namespace berth::store
