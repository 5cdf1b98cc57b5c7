#include "contract/store_fixture.hpp"
#include "store/agents.hpp"
#include "store/companies.hpp"
#include "store/nodes.hpp"
#include "store/places/environments.hpp"
#include "store/retention.hpp"
#include "store/run_events.hpp"
#include "store/runs.hpp"
#include "store/secrets.hpp"

#include <map>
#include <set>
#include <thread>

// Runs: their transitions, their queue, their events and their inputs.
namespace berth::store {
namespace {

using core::Reach;
using core::RunEvent;
using core::RunState;

class Runs : public StoreContract {
 protected:
  Stored<core::Run> stored(const core::RunId& id) {
    auto found = read([&](Session& s) { return find_run(s, Reach::everything(), id); });
    EXPECT_TRUE(found) << found.error().message;
    return *std::move(found);
  }
  Result<Stored<core::Run>> move(const Stored<core::Run>& run, RunEvent event) {
    return write([&](Session& s) { return move_run(s, run, event, now()); });
  }
  Result<std::vector<Stored<core::Run>>> claim(const core::Node& node, std::int64_t limit,
                                               const QueueSkip& skip = {}) {
    return write([&](Session& s) { return claim_runs(s, node.id, skip, limit, now()); });
  }
  core::RunEventRecord event(const core::Run& run, const std::string& message) {
    return {.company_id = run.company_id,
            .run_id = run.id,
            .agent_id = {},
            .event_type = "lifecycle",
            .stream = core::EventStream::stdout_,
            .message = message,
            .payload = bj::object{{"n", 1}},
            .created_at = now()};
  }
};
BERTH_ON_BOTH_ENGINES(Runs);

TEST_P(Runs, ARunComesBackWithAllItsFields) {
  const core::Company acme = given_company();
  core::Run made = run(acme.id);
  made.command = core::RunCommand{.argv = {"sh", "-c", "true"},
                                  .cwd = "/w",
                                  .env_names = {"A"},
                                  .timeout_ms = 5,
                                  .terminal = core::TerminalSize{}};
  made.phases = {{core::RunPhase::queued, now(), {}}};
  made.exit_code = -1;
  made.usage_json = bj::object{{"tokens", 3}};
  made.context_snapshot = {{"taskKey", "t"}};
  made.trigger_detail = core::TriggerDetail::ping;
  EXPECT_WORKS(write([&](Session& s) { return insert_run(s, made); }));
  EXPECT_EQ(encode_text(stored(made.id).value), encode_text(made));
  EXPECT_FAILS(
      read([&](Session& s) { return find_run(s, Reach::only(fresh<core::CompanyId>()), made.id); }),
      Errc::run_not_found);
}

TEST_P(Runs, ARunOfNobodyIsRefused) {
  const core::Run homeless = run(fresh<core::CompanyId>());
  EXPECT_FAILS(write([&](Session& s) { return insert_run(s, homeless); }),
               Errc::environment_not_found);
}

// Every state and every event: transitions in core's table happen, and all others change nothing.
TEST_P(Runs, OnlyTheMovesOfTheTableAreMade) {
  const core::Company acme = given_company();
  for (const RunState from : all<RunState>()) {
    for (const RunEvent on : all<RunEvent>()) {
      core::Run made = run(acme.id);
      made.status = from;
      EXPECT_WORKS(write([&](Session& s) { return insert_run(s, made); }));
      const auto wanted = core::advance(from, on);
      const auto moved = move({made, 1}, on);
      const Stored<core::Run> after = stored(made.id);
      const std::string where = std::string{name_of(from)} + " on " + std::string{name_of(on)};
      EXPECT_EQ(moved.has_value(), wanted.has_value()) << where;
      EXPECT_EQ(after.value.status, wanted.value_or(from)) << where;
      EXPECT_EQ(after.version, wanted ? 2 : 1) << where;
      if (wanted && core::is_final(*wanted)) EXPECT_TRUE(after.value.finished_at) << where;
      if (!moved) EXPECT_EQ(moved.error().code, Errc::conflict) << where;
    }
  }
}

TEST_P(Runs, WhoReadAnOlderVersionOrAnotherStateMovesNothing) {
  const core::Company acme = given_company();
  const Stored<core::Run> old = stored(given_run(acme.id).id);
  EXPECT_WORKS(move(old, RunEvent::claimed));
  EXPECT_FAILS(move(old, RunEvent::cancelled), Errc::conflict);
  Stored<core::Run> pretended = stored(old.value.id);
  pretended.value.status = RunState::running;
  EXPECT_FAILS(move(pretended, RunEvent::exited_zero), Errc::conflict);
  EXPECT_FAILS(write([&](Session& s) { return update_run(s, old, now()); }), Errc::conflict);
  EXPECT_EQ(stored(old.value.id).value.status, RunState::starting);
}

TEST_P(Runs, AMoveWritesTheOtherFieldsToo) {
  const core::Company acme = given_company();
  Stored<core::Run> row = stored(given_run(acme.id).id);
  row.value.error = "no such command";
  core::enter_phase(row.value.phases, core::RunPhase::acquire, now());
  const auto moved = move(row, RunEvent::setup_failed);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->version, 2);
  EXPECT_EQ(encode_text(stored(row.value.id).value), encode_text(moved->value));
}

TEST_P(Runs, ListsFilterByStatusAgentAndEnvironment) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  const core::Agent ada = agent(acme.id);
  EXPECT_WORKS(write([&](Session& s) { return insert_agent(s, ada); }));
  core::Run with_both = run(acme.id);
  with_both.agent_id = ada.id;
  with_both.environment_id = box.id;
  EXPECT_WORKS(write([&](Session& s) { return insert_run(s, with_both); }));
  EXPECT_WORKS(move(stored(given_run(acme.id).id), RunEvent::cancelled));
  given_run(given_company("Other").id);
  const auto count = [&](const RunFilter& filter) {
    return read([&](Session& s) { return list_runs(s, acme.id, filter, {}); })->rows.size();
  };
  EXPECT_EQ(count({}), 2U);
  EXPECT_EQ(count({.status = RunState::cancelled}), 1U);
  EXPECT_EQ(count({.agent_id = ada.id}), 1U);
  EXPECT_EQ(count({.environment_id = box.id}), 1U);
  EXPECT_EQ(count({.status = RunState::cancelled, .agent_id = ada.id}), 0U);
}

TEST_P(Runs, WhatChangedIsWhatBeganEndedOrWorks) {
  const core::Company acme = given_company();
  const Time before = now();
  core::Run old = run(acme.id);
  old.created_at = old.updated_at = before + -60'000;
  core::Run waiting = old;
  waiting.id = fresh<core::RunId>();
  core::Run ended = old;
  ended.id = fresh<core::RunId>();
  for (const core::Run& each : {old, waiting, ended}) {
    EXPECT_WORKS(write([&](Session& s) { return insert_run(s, each); }));
  }
  EXPECT_WORKS(move(stored(ended.id), RunEvent::cancelled));
  const core::Run begun = given_run(acme.id);
  EXPECT_WORKS(write([&](Session& s) { return update_run(s, stored(waiting.id), now()); }));
  given_run(given_company("Other").id);
  const auto changed = [&](Time since, std::int64_t limit) {
    std::vector<core::RunId> ids;
    for (const auto& each :
         *read([&](Session& s) { return runs_changed_since(s, acme.id, {}, since, limit); })) {
      ids.push_back(each.id);
    }
    return ids;
  };
  EXPECT_THAT(changed(before, 10), testing::UnorderedElementsAre(begun.id, waiting.id, ended.id));
  EXPECT_THAT(changed(before, 1), testing::ElementsAre(begun.id));
  EXPECT_THAT(changed(now() + 60'000, 10), testing::IsEmpty());
}

TEST_P(Runs, ASearchLooksIntoCommandErrorAndIdAndTakesEveryCharacterAsItIs) {
  const core::Company acme = given_company();
  core::Run failed = run(acme.id);
  failed.error = "100% of the Disk is full_now";
  EXPECT_WORKS(write([&](Session& s) { return insert_run(s, failed); }));
  given_run(acme.id);
  const auto count = [&](const std::string& text) {
    const RunFilter filter{.search = text};
    return read([&](Session& s) { return list_runs(s, acme.id, filter, {}); })->rows.size();
  };
  EXPECT_EQ(count("the DISK is"), 1U);
  EXPECT_EQ(count("100%"), 1U);
  EXPECT_EQ(count("full_now"), 1U);
  EXPECT_EQ(count("full%now"), 0U);
  EXPECT_EQ(count("fullXnow"), 0U);
  EXPECT_EQ(count(failed.id.str()), 1U);
  EXPECT_EQ(count("nothing of the kind"), 0U);
}

TEST_P(Runs, TheFirstRequestToCancelCountsAndAFinalRunRefusesIt) {
  const core::Company acme = given_company();
  const core::Run made = given_run(acme.id);
  const Time first = now();
  const auto cancel = [&] {
    return write(
        [&](Session& s) { return request_cancel(s, Reach::only(acme.id), made.id, now()); });
  };
  EXPECT_WORKS(cancel());
  clock_.advance(std::chrono::seconds{1});
  EXPECT_WORKS(cancel());
  EXPECT_EQ(stored(made.id).value.cancel_requested_at, first);
  EXPECT_EQ(stored(made.id).value.status, RunState::queued) << "the status follows the fact";
  EXPECT_WORKS(move(stored(made.id), RunEvent::cancelled));
  EXPECT_FAILS(cancel(), Errc::conflict);
}

TEST_P(Runs, OnlyTheNodeOfARunRecordsItsOutput) {
  const core::Node here = given_node();
  const core::Node there = given_node();
  const core::Run made = given_run(given_company().id);
  const auto record = [&](const core::Node& node) {
    return write(
        [&](Session& s) { return record_output(s, made.id, node.id, {10, 2, now()}, now()); });
  };
  EXPECT_FAILS(record(here), Errc::conflict);
  EXPECT_WORKS(claim(here, 1));
  EXPECT_WORKS(record(here));
  EXPECT_FAILS(record(there), Errc::conflict);
  EXPECT_EQ(stored(made.id).value.log_bytes, 10);
  EXPECT_EQ(stored(made.id).value.last_output_seq, 2);
  EXPECT_WORKS(move(stored(made.id), RunEvent::cancelled));
  EXPECT_FAILS(record(here), Errc::conflict);
}

TEST_P(Runs, TheQueueIsInOrderAndPassesOverWhoHasNoRoom) {
  const core::Company acme = given_company();
  const core::Node here = given_node();
  const core::Environment box = given_environment(acme.id, "box");
  const core::Agent ada = agent(acme.id);
  EXPECT_WORKS(write([&](Session& s) { return insert_agent(s, ada); }));
  std::vector<core::Run> made;
  for (int i = 0; i < 6; ++i) {
    clock_.advance(std::chrono::milliseconds{1});
    core::Run next = run(acme.id);
    if (i % 3 == 0) next.agent_id = ada.id;
    if (i % 3 == 1) next.environment_id = box.id;
    EXPECT_WORKS(write([&](Session& s) { return insert_run(s, next); }));
    made.push_back(next);
  }
  const auto position = [&](int i, core::WaitReason reason) {
    return *read([&](Session& s) { return queue_position(s, made[i], reason); });
  };
  EXPECT_EQ(position(3, core::WaitReason::server_limit), 4);
  EXPECT_EQ(position(3, core::WaitReason::agent_limit), 2);
  EXPECT_EQ(position(4, core::WaitReason::environment_limit), 2);

  const QueueSkip skip{.agents = {ada.id, fresh<core::AgentId>()}, .environments = {box.id}};
  const auto waiting = read([&](Session& s) { return queued_runs(s, skip, 10); });
  ASSERT_EQ(waiting->size(), 2U);
  EXPECT_EQ(waiting->front().value.id, made[2].id);
  EXPECT_EQ(claim(here, 1, skip)->front().value.id, made[2].id);
  const auto all = claim(here, 4);
  ASSERT_EQ(all->size(), 4U);
  EXPECT_EQ(all->front().value.id, made[0].id);
  EXPECT_EQ(all->front().value.status, RunState::starting);
  EXPECT_EQ(stored(made[0].id).value.node_id, here.id);
  EXPECT_EQ(stored(made[0].id).version, all->front().version);

  std::int64_t of_ada = 0;
  std::int64_t total = 0;
  for (const WorkingRuns& counted : *read([&](Session& s) { return count_working_runs(s); })) {
    total += counted.count;
    if (counted.agent_id == ada.id) of_ada += counted.count;
  }
  EXPECT_EQ(total, 5);
  EXPECT_EQ(of_ada, 2);
  EXPECT_EQ(read([&](Session& s) { return runs_of_node(s, here.id, 10); })->size(), 5U);
  EXPECT_EQ(claim(here, 10)->size(), 1U);
  EXPECT_TRUE(claim(here, 10)->empty());
}

TEST_P(Runs, TheNextRunIsTheOldestOfTheCompanyThatHasTheFewestRunning) {
  const core::Node here = given_node();
  const core::CompanyId hog = given_company("Hog").id;
  const core::CompanyId acme = given_company("Acme").id;
  const core::CompanyId late = given_company("Late").id;
  given_company("Idle");
  std::vector<std::string> names;
  std::map<std::string, core::Run> made;
  const auto add = [&](const core::CompanyId& company, const std::string& name) {
    clock_.advance(std::chrono::milliseconds{1});
    made.emplace(name, given_run(company));
  };
  for (int i = 0; i < 2; ++i) add(hog, "working" + std::to_string(i));
  EXPECT_EQ(claim(here, 2)->size(), 2U);
  EXPECT_FALSE(*read([&](Session& s) { return has_queued_run(s); }));
  for (int i = 0; i < 60; ++i) add(hog, "hog" + std::to_string(i));
  for (int i = 0; i < 3; ++i) add(acme, "acme" + std::to_string(i));
  add(late, "late0");
  EXPECT_TRUE(*read([&](Session& s) { return has_queued_run(s); }));

  const auto waiting = read([&](Session& s) { return queued_runs(s, {}, 6); });
  ASSERT_TRUE(waiting) << waiting.error().message;
  for (const auto& row : *waiting) {
    for (const auto& [name, run] : made) {
      if (run.id == row.value.id) names.push_back(name);
    }
  }
  // Turns: acme0 and late0 have 1, acme1 has 2; hog0 and acme2 have 3, hog1 has 4.
  EXPECT_EQ(names, (std::vector<std::string>{"acme0", "late0", "acme1", "hog0", "acme2", "hog1"}));
  const auto position = [&](const std::string& name) {
    return *read([&](Session& s) {
      return queue_position(s, made.at(name), core::WaitReason::server_limit);
    });
  };
  EXPECT_EQ(position("acme0"), 1);
  EXPECT_EQ(position("late0"), 2);
  EXPECT_EQ(position("hog0"), 4);
  EXPECT_EQ(position("acme2"), 5);
  EXPECT_EQ(position("hog59"), 64);

  std::int64_t of_hog = 0;
  for (const WorkingRuns& counted : *read([&](Session& s) { return count_working_runs(s); })) {
    if (counted.company_id == hog) of_hog += counted.count;
  }
  EXPECT_EQ(of_hog, 2);
}

TEST_P(Runs, ClaimersAtTheSameTimeNeverGetTheSameRun) {
  constexpr int runs = 60;
  constexpr int threads = 6;
  const core::Company acme = given_company();
  for (int i = 0; i < runs; ++i) given_run(acme.id);
  std::vector<core::Node> nodes;
  for (int i = 0; i < threads; ++i) nodes.push_back(given_node());
  std::vector<std::vector<std::string>> got(threads);
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < threads; ++i) {
      pool.emplace_back([&, i] {
        while (true) {
          const auto claimed = claim(nodes[i], 3);
          if (!claimed) ++failed;
          if (!claimed || claimed->empty()) return;
          for (const auto& row : *claimed) got[i].push_back(row.value.id.str());
        }
      });
    }
  }
  EXPECT_EQ(failed, 0);
  std::set<std::string> seen;
  std::size_t total = 0;
  for (const auto& list : got) {
    total += list.size();
    seen.insert(list.begin(), list.end());
  }
  EXPECT_EQ(seen.size(), total) << "a run was given to two nodes";
  // A claimer that finds the rest locked leaves it for the next call.
  total += claim(nodes[0], runs)->size();
  EXPECT_EQ(total, static_cast<std::size_t>(runs));
}

TEST_P(Runs, EventsAreNumberedWithoutGapsWhoeverWrites) {
  constexpr int threads = 4;
  constexpr int each = 10;
  const core::Company acme = given_company();
  const core::Run made = given_run(acme.id);
  const core::Run other = given_run(acme.id);
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < threads; ++i) {
      pool.emplace_back([&] {
        for (int n = 0; n < each; ++n) {
          const auto done =
              write([&](Session& s) { return append_run_event(s, event(made, "m")); });
          failed += done ? 0 : 1;
        }
      });
    }
  }
  EXPECT_EQ(failed, 0);
  const auto first = write([&](Session& s) { return append_run_event(s, event(other, "x")); });
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->seq, 1);
  const auto events = read([&](Session& s) { return run_events_after(s, made.id, 0, 1000); });
  ASSERT_EQ(events->size(), static_cast<std::size_t>(threads * each));
  std::set<std::int64_t> ids;
  for (std::size_t i = 0; i < events->size(); ++i) {
    EXPECT_EQ((*events)[i].seq, static_cast<std::int64_t>(i) + 1);
    ids.insert((*events)[i].id);
  }
  EXPECT_EQ(ids.size(), events->size());
  EXPECT_FALSE(ids.contains(first->id));
  EXPECT_EQ(events->front().stream, core::EventStream::stdout_);
  EXPECT_EQ(events->front().payload, (bj::object{{"n", 1}}));
}

TEST_P(Runs, EventsAreReadFromTheOneAfter) {
  const core::Run made = given_run(given_company().id);
  EXPECT_FALSE(*read([&](Session& s) { return newest_run_event(s, made.id); }));
  for (const char* text : {"a", "b", "c"}) {
    EXPECT_WORKS(write([&](Session& s) { return append_run_event(s, event(made, text)); }));
  }
  const auto rest = read([&](Session& s) { return run_events_after(s, made.id, 1, 1); });
  ASSERT_EQ(rest->size(), 1U);
  EXPECT_EQ(rest->front().message, "b");
  EXPECT_EQ((*read([&](Session& s) { return newest_run_event(s, made.id); }))->message, "c");
  const core::Run unknown = run(made.company_id);
  EXPECT_FAILS(write([&](Session& s) { return append_run_event(s, event(unknown, "x")); }),
               Errc::run_not_found);
}

TEST_P(Runs, TheSealedInputIsKeptAsLongAsTheRun) {
  const core::Company acme = given_company();
  const core::Run made = given_run(acme.id);
  const SealedInput input{made.id, "key-7", "sealed"};
  EXPECT_WORKS(write([&](Session& s) { return insert_run_input(s, input); }));
  EXPECT_WORKS(move(stored(made.id), RunEvent::claimed));
  const auto find = [&] { return *read([&](Session& s) { return find_run_input(s, made.id); }); };
  ASSERT_TRUE(find());
  EXPECT_EQ(find()->material, "sealed");
  EXPECT_EQ(*read([&](Session& s) { return key_ids_in_use(s); }),
            std::vector<std::string>{"key-7"});
  EXPECT_WORKS(move(stored(made.id), RunEvent::interrupted));
  EXPECT_TRUE(find());
  EXPECT_WORKS(write([&](Session& s) { return delete_run(s, made.id); }));
  EXPECT_FALSE(find());
}

TEST_P(Runs, AnInputIsResealedOnlyOverTheSealThatWasRead) {
  const core::Company acme = given_company();
  std::vector<core::RunId> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(given_run(acme.id).id);
    const SealedInput input{ids.back(), i == 1 ? "new" : "old", "sealed"};
    EXPECT_WORKS(write([&](Session& s) { return insert_run_input(s, input); }));
  }
  std::ranges::sort(ids);
  const auto others = [&](const std::string& after) {
    return *read([&](Session& s) { return inputs_not_sealed_with(s, "new", after, 9); });
  };
  ASSERT_EQ(others("").size(), 2U);
  EXPECT_LT(others("").at(0).run_id, others("").at(1).run_id);
  EXPECT_EQ(others(others("").at(0).run_id.str()).size(), 1U);

  const SealedInput resealed{others("").at(0).run_id, "new", "sealed anew"};
  const auto reseal = [&] {
    return *write([&](Session& s) { return reseal_run_input(s, resealed, "old"); });
  };
  EXPECT_TRUE(reseal());
  EXPECT_FALSE(reseal()) << "it is sealed with another key by now";
  const auto found = read([&](Session& s) { return find_run_input(s, resealed.run_id); });
  EXPECT_EQ((*found)->material, "sealed anew");
  EXPECT_EQ(*read([&](Session& s) { return key_ids_in_use(s); }),
            (std::vector<std::string>{"new", "old"}));
}

TEST_P(Runs, WhatARunHasReadIsKeptOnceAndGoesWithTheRunAndWithTheSecret) {
  const core::Company acme = given_company();
  const core::RunId run = given_run(acme.id).id;
  const core::SecretRecord one = given_secret(acme.id, "one");
  const core::SecretRecord two = given_secret(acme.id, "two");
  const auto note = [&](const core::RunId& id, const core::SecretRecord& secret,
                        std::int64_t version) {
    return write([&](Session& s) { return record_redaction(s, {id, secret.id, version}); });
  };
  for (const std::int64_t version : {1, 2, 1}) EXPECT_WORKS(note(run, one, version));
  EXPECT_WORKS(note(run, two, 1));
  EXPECT_FAILS(note(fresh<core::RunId>(), one, 1), Errc::run_not_found);
  const auto noted = [&] { return *read([&](Session& s) { return redactions_of_run(s, run); }); };
  EXPECT_EQ(noted().size(), 3U);
  EXPECT_WORKS(write([&](Session& s) { return delete_secret(s, one.id); }));
  EXPECT_EQ(noted(), (std::vector<RunRedaction>{{run, two.id, 1, {}}}));
  EXPECT_WORKS(write([&](Session& s) { return s.run("delete from heartbeat_runs", {}); }));
  EXPECT_TRUE(noted().empty());
}

TEST_P(Runs, WhatAnotherServerNotedIsToBeHiddenUntilTheServerOfTheRunHasDoneIt) {
  const core::Company acme = given_company();
  const core::Node here = given_node();
  const core::Node there = given_node();
  const core::SecretRecord key = given_secret(acme.id, "key");
  const core::RunId id = given_run(acme.id).id;
  const auto owed = [&](const core::Node& node) {
    return *read([&](Session& s) { return redactions_to_hide(s, node.id, 9); });
  };
  const auto adopt = [&](const core::Node& node) {
    EXPECT_WORKS(write(
        [&](Session& s) { return query(s, "update heartbeat_runs set node_id = $1", node.id); }));
  };
  EXPECT_WORKS(claim(here, 1));
  const RunRedaction noted{id, key.id, 1};
  EXPECT_WORKS(write([&](Session& s) { return record_redaction(s, noted); }));
  EXPECT_EQ(owed(here), std::vector{noted});
  EXPECT_TRUE(owed(there).empty());
  EXPECT_WORKS(write([&](Session& s) { return mark_hidden(s, noted, here.id); }));
  EXPECT_TRUE(owed(here).empty());
  adopt(there);
  EXPECT_EQ(owed(there).size(), 1U) << "who takes the run over owes it again";
  EXPECT_WORKS(move(stored(id), RunEvent::interrupted));
  EXPECT_TRUE(owed(there).empty());
}

TEST_P(Runs, ACompanyGoesWithItsRunsOnceTheyAreFinal) {
  const core::Company acme = given_company();
  const core::Run made = given_run(acme.id);
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_DO(insert_run_input(s, {made.id, "k", "m"}));
    BERTH_DO(append_run_event(s, event(made, "x")));
    return {};
  }));
  const auto remove = [&] { return write([&](Session& s) { return delete_company(s, acme.id); }); };
  EXPECT_FAILS(remove(), Errc::company_in_use);
  EXPECT_WORKS(move(stored(made.id), RunEvent::cancelled));
  EXPECT_WORKS(remove());
  EXPECT_EQ(number("select (select count(*) from heartbeat_runs)"
                   " + (select count(*) from heartbeat_run_inputs)"
                   " + (select count(*) from heartbeat_run_events)"),
            0);
}

TEST_P(Runs, TheRunsOfADeletedEnvironmentStay) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  core::Run made = run(acme.id);
  made.environment_id = box.id;
  EXPECT_WORKS(write([&](Session& s) { return insert_run(s, made); }));
  EXPECT_TRUE(*write([&](Session& s) { return delete_environment(s, box.id); }));
  EXPECT_FALSE(stored(made.id).value.environment_id);
  EXPECT_EQ(stored(made.id).version, 2) << "who read the old place must not write it back";
}

}  // namespace
}  // namespace berth::store
