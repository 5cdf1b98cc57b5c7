#include "contract/store_fixture.hpp"
#include "store/activity.hpp"
#include "store/agents.hpp"
#include "store/companies.hpp"
#include "store/nodes.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/run_events.hpp"
#include "store/runs.hpp"
#include "store/secrets.hpp"
#include "store/tokens.hpp"

#include <set>

// Pages: they are complete, and an index serves them in order.
namespace berth::store {
namespace {

using core::Reach;

using Lists = StoreContract;
BERTH_ON_BOTH_ENGINES(Lists);

TEST_P(Lists, PagesOverEqualTimesMissAndRepeatNothing) {
  const core::Company acme = given_company();
  const core::Company other = given_company("Other");
  std::set<std::string> made;
  for (int i = 0; i < 23; ++i) {
    if (i % 10 == 9) clock_.advance(std::chrono::milliseconds{1});
    made.insert(given_environment(acme.id, "e" + std::to_string(i)).id.str());
    given_environment(other.id, "e" + std::to_string(i));
  }
  std::set<std::string> seen;
  PageRequest request{.limit = 5};
  std::vector<std::size_t> sizes;
  std::optional<core::PageKey> last;
  do {
    const auto page = read([&](Session& s) { return list_environments(s, acme.id, {}, request); });
    ASSERT_TRUE(page) << page.error().message;
    sizes.push_back(page->rows.size());
    for (const Stored<core::Environment>& row : page->rows) {
      EXPECT_TRUE(seen.insert(row.value.id.str()).second) << "twice: " << row.value.name;
      const core::PageKey key{row.value.updated_at, row.value.id.str()};
      if (last) EXPECT_GT(std::tie(last->at.ms, last->id), std::tie(key.at.ms, key.id));
      last = key;
    }
    request.after = page->next;
  } while (request.after);
  EXPECT_EQ(seen, made);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{5, 5, 5, 5, 3}));
}

TEST_P(Lists, APageThatEndsWithTheListHasNoNext) {
  const core::Company acme = given_company();
  for (int i = 0; i < 4; ++i) given_environment(acme.id, "e" + std::to_string(i));
  const auto page = read([&](Session& s) { return list_environments(s, acme.id, {}, {4}); });
  EXPECT_EQ(page->rows.size(), 4U);
  EXPECT_FALSE(page->next);
}

// Asks the engine for its plan before it runs a statement.
class ExplainingSession final : public Session {
 public:
  ExplainingSession(Session& inner, EngineKind engine) : inner_(inner), engine_(engine) {}

  Result<Rows> run(std::string_view sql, std::span<const Value> parameters) override {
    const std::string ask =
        engine_ == EngineKind::sqlite ? "explain query plan " : "explain (costs off) ";
    BERTH_TRY(const Rows plan, inner_.run(ask + std::string{sql}, parameters));
    for (const std::vector<Value>& row : plan.rows)
      plan_ += std::get<std::string>(row.back()) + "\n";
    return inner_.run(sql, parameters);
  }
  std::string_view skip_locked() const override { return inner_.skip_locked(); }
  const std::string& plan() const { return plan_; }

 private:
  Session& inner_;
  EngineKind engine_;
  std::string plan_;
};

class ListPlans : public StoreContract {
 protected:
  // Enough rows that reading them all would be the wrong plan on both engines.
  void fill(const core::Company& acme, const core::Environment& box,
            const core::SecretRecord& key) {
    constexpr int rows = 3000;
    EXPECT_WORKS(write([&](Session& s) -> Result<> {
      for (int i = 0; i < rows; ++i) {
        clock_.advance(std::chrono::milliseconds{1});
        const std::string n = std::to_string(i);
        BERTH_DO(insert_company(s, company("c" + n)));
        BERTH_DO(insert_environment(s, environment(acme.id, "e" + n)));
        BERTH_DO(insert_agent(s, agent(acme.id)));
        BERTH_DO(insert_lease(s, lease(box, core::LeaseState::failed)));
        BERTH_DO(insert_secret(s, secret(acme.id, "s" + n)));
        BERTH_DO(insert_access_event(s, access_event(key)));
        BERTH_DO(insert_activity(s, activity(acme.id, "entity")));
        BERTH_DO(insert_token(s, token(acme.id), n));
      }
      return {};
    }));
    EXPECT_WORKS(write([&](Session& s) { return s.run("analyze", {}); }));
  }

  template <class List>
  void expect_index(const char* name, List list) {
    EXPECT_WORKS(read([&](Session& s) -> Result<> {
      ExplainingSession session{s, GetParam()};
      BERTH_DO(list(session));
      const std::string& plan = session.plan();
      EXPECT_FALSE(plan.contains("SCAN ") && !plan.contains("USING")) << name << ":\n" << plan;
      EXPECT_FALSE(plan.contains("TEMP B-TREE")) << name << ":\n" << plan;
      EXPECT_FALSE(plan.contains("Sort")) << name << ":\n" << plan;
      EXPECT_FALSE(plan.contains("Seq Scan")) << name << ":\n" << plan;
      return {};
    }));
  }
};
BERTH_ON_BOTH_ENGINES(ListPlans);

TEST_P(ListPlans, EveryListIsReadFromAnIndexInItsOrder) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  const core::SecretRecord key = given_secret(acme.id, "key");
  fill(acme, box, key);
  const PageRequest page{.limit = 50, .after = core::PageKey{now() + -1000, acme.id.str()}};
  using core::DriverKind;
  using core::EnvironmentStatus;

  expect_index("companies",
               [&](Session& s) { return list_companies(s, Reach::everything(), page); });
  expect_index("agents", [&](Session& s) { return list_agents(s, acme.id, page); });
  const std::vector<EnvironmentFilter> filters = {
      {},
      {.driver = DriverKind::ssh, .status = {}},
      {.driver = {}, .status = EnvironmentStatus::active},
      {.driver = DriverKind::ssh, .status = EnvironmentStatus::active},
  };
  for (const EnvironmentFilter& filter : filters) {
    expect_index("environments",
                 [&](Session& s) { return list_environments(s, acme.id, filter, page); });
  }
  expect_index("leases", [&](Session& s) { return list_leases(s, box.id, {}, page); });
  expect_index("leases by state",
               [&](Session& s) { return list_leases(s, box.id, core::LeaseState::failed, page); });
  expect_index("secrets", [&](Session& s) { return list_secrets(s, acme.id, page); });
  expect_index("events", [&](Session& s) { return list_access_events(s, key.id, page); });
  for (const ActivityFilter& filter :
       {ActivityFilter{},
        ActivityFilter{.entity_type = "environment", .entity_id = "", .action = ""},
        ActivityFilter{.entity_type = "environment", .entity_id = "entity", .action = ""},
        ActivityFilter{.entity_type = "", .entity_id = "", .action = "environment.created"}}) {
    expect_index("activity", [&](Session& s) { return list_activity(s, acme.id, filter, page); });
  }
  expect_index("tokens", [&](Session& s) { return list_tokens(s, Reach::everything(), page); });
  expect_index("tokens of a company",
               [&](Session& s) { return list_tokens(s, Reach::only(acme.id), page); });
}

// A long history that includes queued and running runs, for many agents, places and nodes.
class WorkPlans : public ListPlans {
 protected:
  void fill(const core::Company& acme, const std::vector<core::Environment>& boxes,
            const std::vector<core::Agent>& agents) {
    constexpr int rows = 3000;
    EXPECT_WORKS(write([&](Session& s) -> Result<> {
      for (int i = 0; i < rows; ++i) {
        clock_.advance(std::chrono::milliseconds{1});
        const bool live = i % 5 == 0;
        const core::Environment& box = boxes[i / 5 % boxes.size()];
        core::Run made = run(acme.id);
        made.agent_id = agents[i / 50 % agents.size()].id;
        made.environment_id = box.id;
        made.status = live ? core::RunState::queued : core::RunState::succeeded;
        BERTH_DO(insert_run(s, made));
        core::LeaseRecord held =
            lease(box, live ? core::LeaseState::active : core::LeaseState::released);
        held.heartbeat_run_id = made.id;
        held.sandbox_id = fresh<core::SandboxId>();
        held.node_id = fresh<core::NodeId>();
        held.next_attempt_at = now() + 3'600'000;
        BERTH_DO(insert_lease(s, held));
        core::Sandbox kept =
            sandbox(box, live ? core::SandboxState::idle : core::SandboxState::destroyed);
        kept.fingerprint = std::to_string(i);
        kept.next_attempt_at = now() + 3'600'000;
        BERTH_DO(insert_sandbox(s, kept));
        BERTH_DO(append_run_event(s, {.company_id = acme.id,
                                      .run_id = made.id,
                                      .agent_id = {},
                                      .event_type = "lifecycle",
                                      .message = "m",
                                      .payload = {},
                                      .created_at = now()}));
      }
      return {};
    }));
    EXPECT_WORKS(write([&](Session& s) { return s.run("analyze", {}); }));
  }

  // The plan names this index and does no full table scan, except of the few servers.
  template <class Query>
  void expect_uses(const char* index, Query ask) {
    EXPECT_WORKS(write([&](Session& s) -> Result<> {
      ExplainingSession session{s, GetParam()};
      BERTH_DO(ask(session));
      std::string plan = session.plan();
      constexpr std::string_view of_servers = "Seq Scan on nodes";
      for (auto at = plan.find(of_servers); at != plan.npos; at = plan.find(of_servers)) {
        plan.erase(at, of_servers.size());
      }
      EXPECT_TRUE(plan.contains(index)) << index << ":\n" << plan;
      EXPECT_FALSE(plan.contains("Seq Scan")) << index << ":\n" << plan;
      EXPECT_FALSE(plan.contains("SCAN ") && !plan.contains("USING")) << index << ":\n" << plan;
      return {};
    }));
  }
};
BERTH_ON_BOTH_ENGINES(WorkPlans);

TEST_P(WorkPlans, WhatWaitsOrWorksIsFoundPastAnyHistory) {
  const core::Company acme = given_company();
  std::vector<core::Environment> boxes;
  std::vector<core::Agent> agents;
  for (int i = 0; i < 10; ++i) {
    boxes.push_back(given_environment(acme.id, "box" + std::to_string(i)));
    agents.push_back(agent(acme.id));
    EXPECT_WORKS(write([&](Session& s) { return insert_agent(s, agents.back()); }));
  }
  const core::Environment& box = boxes.front();
  const core::Agent& ada = agents.front();
  const core::Node here = given_node();
  fill(acme, boxes, agents);
  core::Run last = run(acme.id);
  last.agent_id = ada.id;
  last.environment_id = box.id;
  using core::WaitReason;

  const bool is_sqlite = GetParam() == EngineKind::sqlite;
  expect_uses("heartbeat_runs_queued", [&](Session& s) { return has_queued_run(s); });
  // PostgreSQL rightly scans a table with one company.
  if (is_sqlite) {
    expect_uses("heartbeat_runs_by_status", [&](Session& s) { return queued_runs(s, {}, 10); });
  }
  expect_uses("heartbeat_runs_queued_by_agent",
              [&](Session& s) { return queue_position(s, last, WaitReason::agent_limit); });
  expect_uses("heartbeat_runs_queued_by_environment",
              [&](Session& s) { return queue_position(s, last, WaitReason::environment_limit); });
  expect_uses("heartbeat_runs_queued",
              [&](Session& s) { return claim_runs(s, here.id, {}, 1, now()); });
  // To PostgreSQL both indexes of active runs are equally good.
  expect_uses(is_sqlite ? "heartbeat_runs_load" : "heartbeat_runs_",
              [&](Session& s) { return count_working_runs(s); });
  expect_uses("heartbeat_runs_working", [&](Session& s) { return runs_of_node(s, here.id, 10); });
  expect_uses("heartbeat_run_events_run_id_seq",
              [&](Session& s) { return run_events_after(s, last.id, 0, 10); });
  expect_uses("heartbeat_run_events_run_id_seq",
              [&](Session& s) { return newest_run_event(s, last.id); });
  expect_uses("environment_leases_by_run", [&](Session& s) { return leases_of_run(s, last.id); });
  expect_uses("environment_leases_live",
              [&](Session& s) { return due_leases(s, here.id, now(), 10); });
  expect_uses("environment_leases_live",
              [&](Session& s) { return leases_of_node(s, here.id, 10); });
  expect_uses("environment_leases_sandbox_id",
              [&](Session& s) { return live_lease_of(s, fresh<core::SandboxId>()); });
  expect_uses("sandboxes_live", [&](Session& s) { return due_sandboxes(s, here.id, now(), 10); });
  const SandboxClaim claim{acme.id, "7", fresh<core::LeaseId>(), here.id};
  expect_uses("sandboxes_idle", [&](Session& s) { return claim_idle_sandbox(s, claim, now()); });

  const PageRequest page{.limit = 50, .after = core::PageKey{now() + -1000, acme.id.str()}};
  for (const RunFilter& filter :
       {RunFilter{}, RunFilter{.status = core::RunState::succeeded}, RunFilter{.agent_id = ada.id},
        RunFilter{.environment_id = box.id}, RunFilter{.name = "nightly"}}) {
    expect_index("runs", [&](Session& s) { return list_runs(s, acme.id, filter, page); });
    expect_index("runs", [&](Session& s) { return brief_runs(s, acme.id, filter, page); });
  }
  const auto changed = [&](Session& s) {
    return runs_changed_since(s, acme.id, {}, now() + -1000, 50);
  };
  expect_uses("heartbeat_runs_stored", changed);
  expect_uses("heartbeat_runs_by_status", changed);
  for (const LeaseFilter& filter :
       {LeaseFilter{}, LeaseFilter{.status = core::LeaseState::released},
        LeaseFilter{.environment_id = box.id}, LeaseFilter{.parked_only = true},
        LeaseFilter{.held_only = true}}) {
    expect_index("leases",
                 [&](Session& s) { return list_company_leases(s, acme.id, filter, page); });
  }
  for (const SandboxFilter& filter :
       {SandboxFilter{}, SandboxFilter{.status = core::SandboxState::destroyed},
        SandboxFilter{.environment_id = box.id}}) {
    expect_index("sandboxes", [&](Session& s) { return list_sandboxes(s, acme.id, filter, page); });
  }
}

}  // namespace
}  // namespace berth::store
