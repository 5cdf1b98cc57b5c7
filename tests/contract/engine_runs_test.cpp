#include "base/digest.hpp"
#include "contract/work_fixture.hpp"
#include "store/places/environments.hpp"
#include "store/runs.hpp"

#include <sstream>

namespace berth::engine {
namespace {

using core::ChoiceReason;
using core::DriverKind;
using core::LeaseState;
using core::OutputStream;
using core::RunState;
using core::WaitReason;

class Working : public WorkContract {
 protected:
  core::AgentId made_agent(const std::string& name, std::optional<bj::object> runtime = {}) {
    CreateAgent wanted;
    wanted.name = name;
    wanted.adapter_type = core::AdapterType::process;
    wanted.adapter_config = bj::object{{"command", "true"}};
    wanted.runtime_config = std::move(runtime);
    const auto made = await(server()->agents.create(admin(), *company_, std::move(wanted)));
    EXPECT_WORKS(made);
    return made->value.id;
  }
  void set_status(const core::AgentId& id, core::AgentStatus status) {
    UpdateAgent change;
    change.status = {true, status};
    EXPECT_WORKS(await(server()->agents.update(admin(), id, change)));
    server()->dispatcher.poke();
  }
  core::EnvironmentId made_environment(const std::string& name) {
    const auto made = await(server()->environments.create(admin(), *company_, ssh(name)));
    EXPECT_WORKS(made);
    return made->value.id;
  }
  Result<core::Run> try_start(StartRun wanted) {
    return await(server()->runs.start(admin(), *company_, std::move(wanted)));
  }
  StartRun in(const core::EnvironmentId& id) {
    StartRun wanted = program({"true"});
    wanted.environment_id = id;
    return wanted;
  }
  StartRun by(const core::AgentId& agent, StartRun wanted) {
    wanted.agent_id = agent;
    return wanted;
  }
  void cancel(const core::RunId& id) { EXPECT_WORKS(await(server()->runs.cancel(admin(), id))); }
  void end(const std::vector<core::RunId>& runs) {
    for (const core::RunId& id : runs) cancel(id);
    for (const core::RunId& id : runs) ended(id);
  }
};

class Choice : public Working {};
BERTH_ON_BOTH_ENGINES(Choice);

TEST_P(Choice, EveryRunSaysWhyItGoesWhereItGoes) {
  const core::AgentId ada = made_agent("Ada");
  const core::EnvironmentId own = made_environment("own");
  const core::EnvironmentId hers = made_environment("hers");
  const core::EnvironmentId asked = made_environment("asked");
  const auto expect = [&](StartRun wanted, ChoiceReason reason, const core::EnvironmentId& id,
                          const std::string& sentence) {
    const auto run = try_start(std::move(wanted));
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_EQ(run->environment_id, id);
    ASSERT_TRUE(run->environment_choice);
    EXPECT_EQ(run->environment_choice->environment_id, id);
    EXPECT_EQ(name_of(run->environment_choice->reason), name_of(reason));
    EXPECT_EQ(run->environment_choice->explanation, sentence);
    EXPECT_EQ(events(run->id).at(0).message, sentence);
  };
  expect(by(ada, program({"true"})), ChoiceReason::local, local(),
         "Nothing names an environment, so the run stays on the server's machine, in 'Local'.");
  UpdateCompany company;
  company.default_environment_id = {true, own};
  EXPECT_WORKS(await(server()->companies.update(admin(), *company_, company)));
  expect(by(ada, program({"true"})), ChoiceReason::company_default, own,
         "'own' is the default of the company, and neither the run nor its agent names another.");
  UpdateAgent agent;
  agent.default_environment_id = {true, hers};
  EXPECT_WORKS(await(server()->agents.update(admin(), ada, agent)));
  expect(by(ada, program({"true"})), ChoiceReason::agent_default, hers,
         "'hers' is the default of the agent.");
  expect(by(ada, in(asked)), ChoiceReason::run, asked, "The run asked for environment 'asked'.");
}

TEST_P(Choice, AnEnvironmentThatCannotTakeTheRunIsRefused) {
  const core::EnvironmentId archived = made_environment("archived");
  UpdateEnvironment change;
  change.status = {true, core::EnvironmentStatus::archived};
  EXPECT_WORKS(await(server()->environments.update(admin(), archived, change)));
  EXPECT_FAILS(try_start(in(archived)), Errc::environment_inactive);

  const core::Environment fake =
      put_environment(DriverKind::sandbox, "fake", {{"provider", "fake"}});
  EXPECT_FAILS(try_start(in(fake.id)), Errc::unsupported_adapter_environment);

  const auto other = await(server()->companies.create(admin(), {"Other", std::nullopt}));
  const auto foreign =
      await(server()->environments.create(admin(), other->value.id, ssh("foreign")));
  EXPECT_FAILS(try_start(in(foreign->value.id)), Errc::environment_not_found);
  EXPECT_EQ(number("select count(*) from heartbeat_runs"), 0);
}

TEST_P(Choice, WhatNoLongerFitsWhenItsTurnComesFailsTheRun) {
  const core::EnvironmentId soon_gone = made_environment("soon gone");
  const core::EnvironmentId soon_archived = made_environment("soon archived");
  const core::RunId without = start(in(soon_gone));
  const core::RunId within = start(in(soon_archived));
  EXPECT_WORKS(await(server()->environments.remove(admin(), soon_gone)));
  UpdateEnvironment change;
  change.status = {true, core::EnvironmentStatus::archived};
  EXPECT_WORKS(await(server()->environments.update(admin(), soon_archived, change)));
  server().open();
  EXPECT_EQ(ended(without).error_code, "environment_not_found");
  const RunView view = ended(within);
  EXPECT_EQ(view.status, RunState::failed);
  EXPECT_EQ(view.error_code, "environment_inactive");
  EXPECT_EQ(view.lease_id, std::nullopt);
  EXPECT_EQ(events(within).back().message, *view.error);
}

TEST_P(Choice, ARunWhoseDriverThisServerDoesNotHaveFailsAndSaysSo) {
  const core::EnvironmentId nowhere = made_environment("nowhere");  // there is no `ssh` driver here
  server().open();
  const RunView view = ended(start(in(nowhere)));
  EXPECT_EQ(name_of(view.status), name_of(RunState::failed));
  EXPECT_EQ(view.error_code, "unsupported_environment");
  EXPECT_TRUE(view.error.value_or("").contains("\"ssh\"")) << view.error.value_or("");
  ASSERT_TRUE(view.lease_id);
  EXPECT_EQ(name_of(lease(*view.lease_id).status), name_of(LeaseState::pending_cleanup));
}

TEST_P(Choice, ARunWhoseProviderIsGoneFailsAndSaysSo) {
  ProviderCapability ghost;
  ghost.status = Support::supported;
  ghost.supports_run_execution = true;
  server()->catalog.add("ghost", std::move(ghost));
  const core::Environment gone =
      put_environment(DriverKind::sandbox, "gone", {{"provider", "ghost"}});
  server().open();
  const RunView view = ended(start(in(gone.id)));
  EXPECT_EQ(name_of(view.status), name_of(RunState::failed));
  EXPECT_TRUE(view.error.value_or("").contains("\"ghost\"")) << view.error.value_or("");
}

class Queue : public Working {
 protected:
  void SetUp() override {
    Working::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    server().open();
  }
  void expect_waiting(const core::RunId& id, WaitReason reason, std::int64_t position) {
    const RunView view = look(id);
    EXPECT_EQ(name_of(view.status), name_of(RunState::queued));
    ASSERT_TRUE(view.queue);
    EXPECT_EQ(name_of(view.queue->reason), name_of(reason));
    EXPECT_EQ(view.queue->position, position);
    EXPECT_FALSE(view.queue->explanation.empty());
  }
};
BERTH_ON_BOTH_ENGINES(Queue);

TEST_P(Queue, AnAgentsRunsWaitForEachOtherAndForNobodyElse) {
  const core::AgentId ada =
      made_agent("Ada", bj::object{{"heartbeat", bj::object{{"maxConcurrentRuns", 1}}}});
  const core::RunId first = start(by(ada, program({"sleep", "60"})));
  reaches(first, RunState::running);
  const core::RunId second = start(by(ada, program({"sleep", "60"})));
  const core::RunId third = start(by(ada, program({"true"})));
  EXPECT_EQ(ran(program({"true"})).status, RunState::succeeded);
  expect_waiting(second, WaitReason::agent_limit, 1);
  expect_waiting(third, WaitReason::agent_limit, 2);
  cancel(first);
  reaches(second, RunState::running);
  expect_waiting(third, WaitReason::agent_limit, 1);
  end({first, second});
  EXPECT_EQ(ended(third).status, RunState::succeeded);
}

TEST_P(Queue, AnEnvironmentHasNoMoreRunsThanItMayHave) {
  set_metadata(local(), {{"maxConcurrentRuns", 2}});
  const core::RunId first = start(program({"sleep", "60"}));
  const core::RunId second = start(program({"sleep", "60"}));
  reaches(first, RunState::running);
  reaches(second, RunState::running);
  const core::RunId third = start(program({"true"}));
  const core::RunId fourth = start(program({"true"}));
  server()->dispatcher.poke();
  expect_waiting(third, WaitReason::environment_limit, 1);
  expect_waiting(fourth, WaitReason::environment_limit, 2);
  cancel(first);
  EXPECT_EQ(ended(third).status, RunState::succeeded);
  EXPECT_EQ(ended(fourth).status, RunState::succeeded);
  end({first, second});
}

TEST_P(Queue, ThePausedAgentsRunsWaitUntilItIsResumed) {
  const core::AgentId ada = made_agent("Ada");
  set_status(ada, core::AgentStatus::paused);
  const core::RunId waiting = start(by(ada, program({"true"})));
  EXPECT_EQ(ran(program({"true"})).status, RunState::succeeded);
  expect_waiting(waiting, WaitReason::agent_paused, 1);
  set_status(ada, core::AgentStatus::idle);
  EXPECT_EQ(ended(waiting).status, RunState::succeeded);
  set_status(ada, core::AgentStatus::terminated);
  EXPECT_FAILS(try_start(by(ada, program({"true"}))), Errc::agent_not_runnable);
}

TEST_P(Queue, AQueuedRunIsCancelledAtOnce) {
  const core::AgentId ada = made_agent("Ada");
  set_status(ada, core::AgentStatus::paused);
  const core::RunId id = start(by(ada, program({"true"})));
  const auto cancelled = await(server()->runs.cancel(admin(), id));
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_EQ(cancelled->status, RunState::cancelled);
  EXPECT_EQ(cancelled->error_code, "cancelled");
  EXPECT_EQ(cancelled->lease_id, std::nullopt);
  EXPECT_TRUE(cancelled->phases.back().finished_at);
  const auto again = await(server()->runs.cancel(admin(), id));
  EXPECT_EQ(again->updated_at, cancelled->updated_at);
  set_status(ada, core::AgentStatus::idle);
  EXPECT_EQ(ran(by(ada, program({"true"}))).status, RunState::succeeded);
  EXPECT_EQ(look(id).status, RunState::cancelled);
}

class Commands : public Working {
 protected:
  void SetUp() override {
    Working::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    server().open();
  }
  bj::object reference(const std::string& name, const std::string& value) {
    CreateSecret wanted = secret_named(name);
    wanted.value.emplace(value);
    const auto made = await(server()->secrets.create(admin(), *company_, std::move(wanted)));
    EXPECT_WORKS(made);
    secrets_.insert_or_assign(name, made->id);
    return {{"type", "secret_ref"}, {"secretId", made->id.str()}};
  }
  std::map<std::string, core::SecretId> secrets_;
};
BERTH_ON_BOTH_ENGINES(Commands);

TEST_P(Commands, ARunTellsItsLifeInOrderWithoutGaps) {
  const RunView view = ran(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(view.status, RunState::failed);
  EXPECT_EQ(view.exit_code, 3);
  EXPECT_EQ(view.error_code, "command_failed");
  EXPECT_EQ(view.stdout_excerpt, "out\n");
  EXPECT_EQ(view.stderr_excerpt, "err\n");
  std::vector<std::string> told;
  std::int64_t seq = 0;
  for (const core::RunEventRecord& event : events(view.id)) {
    EXPECT_EQ(event.seq, ++seq);
    const bj::value* status = event.payload ? event.payload->if_contains("status") : nullptr;
    told.push_back(status != nullptr ? std::string{status->as_string()} : event.event_type);
  }
  EXPECT_EQ(told, (std::vector<std::string>{"queued", "starting", "running", "adapter.invoke",
                                            "failed"}));
  std::vector<std::string> phases;
  for (const core::PhaseTimes& phase : view.phases) {
    phases.emplace_back(name_of(phase.phase));
    EXPECT_TRUE(phase.finished_at) << phases.back();
  }
  EXPECT_EQ(phases,
            (std::vector<std::string>{"queued", "acquire", "realize", "execute", "release"}));
  const auto news = await(server()->runs.next_events(admin(), view.id, seq));
  EXPECT_TRUE(news->complete);
  EXPECT_TRUE(await(server()->runs.next_events(admin(), view.id, seq - 1))->events.size() == 1);
}

TEST_P(Commands, ACancelledRunEndsWithItsWholeTree) {
  StartRun wanted = shell("trap 'echo told' TERM; sleep 600 & echo up; while :; do wait; done");
  wanted.grace_ms = 300;
  const core::RunId id = start(std::move(wanted));
  EXPECT_TRUE(says(id, "up"));
  cancel(id);
  cancel(id);
  const RunView view = ended(id);
  EXPECT_EQ(view.status, RunState::cancelled);
  EXPECT_EQ(view.error_code, "cancelled");
  EXPECT_EQ(said(id), "up\ntold\n");
}

TEST_P(Commands, ARunThatTakesTooLongIsToldToEndAndThenMade) {
  StartRun wanted = shell("trap 'echo told' TERM; echo up; while :; do sleep 0.05; done");
  wanted.timeout_ms = 700;
  wanted.grace_ms = 300;
  const RunView view = ran(std::move(wanted));
  EXPECT_EQ(view.status, RunState::timed_out);
  EXPECT_EQ(view.error_code, "timed_out");
  EXPECT_TRUE(view.error->starts_with("Timed out after 700 ms"));
  EXPECT_EQ(said(view.id), "up\ntold\n");
  EXPECT_EQ(view.environment_lease->status, LeaseState::failed);
}

TEST_P(Commands, ACommandReadsWhatTheRunWasGiven) {
  StartRun wanted = program({"cat"});
  wanted.stdin_text = std::string(300'000, 'x') + "\nend";
  EXPECT_EQ(said(ran(wanted).id), *wanted.stdin_text);
  EXPECT_EQ(said(ran(program({"cat"})).id), "") << "nothing given is the end of input";
  EXPECT_EQ(number("select count(*) from heartbeat_run_inputs"), 1) << "inputs stay with their run";
}

TEST_P(Commands, ACommandReadsWhatIsSentToIt) {
  StartRun wanted = shell("read line; echo \"1 $line\"; read line; echo \"2 $line\"; cat");
  wanted.stdin_open = true;
  const core::RunId id = start(std::move(wanted));
  reaches(id, RunState::running);
  EXPECT_WORKS(await(server()->runs.send(admin(), id, "one\n")));
  EXPECT_TRUE(says(id, "1 one\n"));
  EXPECT_WORKS(await(server()->runs.send(admin(), id, "two\nrest")));
  EXPECT_WORKS(await(server()->runs.send(admin(), id, places::EndOfInput{})));
  EXPECT_EQ(ended(id).status, RunState::succeeded);
  EXPECT_EQ(said(id), "1 one\n2 two\nrest");
  EXPECT_FAILS(await(server()->runs.send(admin(), id, "more")), Errc::run_not_running);
}

TEST_P(Commands, ACommandsEnvironmentIsMadeOfNothing) {
  ::setenv("A_VARIABLE_OF_THE_SERVER", "1", 1);
  const core::AgentId ada = made_agent("Ada");
  StartRun wanted = by(ada, program({"env"}));
  wanted.env = bj::object{{"GIVEN", "by the run"}};
  const RunView view = ran(std::move(wanted));
  std::set<std::string> names;
  std::istringstream lines{said(view.id)};
  for (std::string line; std::getline(lines, line);) names.insert(line.substr(0, line.find('=')));
  std::set<std::string> promised{"PATH", "HOME", "LANG", "TERM", "TMPDIR", "TMP", "TEMP", "GIVEN"};
  for (const char* name :
       {"COMPANY_ID", "RUN_ID", "AGENT_ID", "API_URL", "API_KEY", "RUN_SCRATCH_DIR",
        "TASK_SCRATCH_DIR", "SCRATCH_DIR", "TMPDIR", "WORKSPACE_CWD"}) {
    promised.insert(std::string{"BERTH_"} + name);
    promised.insert(std::string{"PAPERCLIP_"} + name);
  }
  EXPECT_EQ(names, promised);
  EXPECT_TRUE(said(view.id).contains("GIVEN=by the run\n"));
  EXPECT_TRUE(said(view.id).contains("BERTH_RUN_ID=" + view.id.str() + "\n"));
  EXPECT_TRUE(said(view.id).contains("PAPERCLIP_API_KEY=***REDACTED***\n"));
}

TEST_P(Commands, ASecretIsNowhereButInTheProcess) {
  const std::string value = "correct horse battery staple";
  StartRun wanted = shell(R"(
    printf '%s' "$TOKEN" | sha256sum
    first=$(printf %.9s "$TOKEN"); rest=${TOKEN#"$first"}
    printf %s "$first"; sleep 0.1; printf '%s\n' "$rest"
    printf %s "$first" >&2; sleep 0.1; printf '%s\n' "$rest" >&2
    echo "$MY_PASSWORD"; exit 1)");
  wanted.env = bj::object{{"TOKEN", reference("token", value)}, {"MY_PASSWORD", "hunter2hunter2"}};
  const RunView view = ran(std::move(wanted));
  EXPECT_TRUE(said(view.id).starts_with(sha256_hex(value))) << "the process has it";
  EXPECT_TRUE(said(view.id).ends_with("-\n***REDACTED***\n***REDACTED***\n")) << said(view.id);
  EXPECT_EQ(output(view.id, OutputStream::stderr_), "***REDACTED***\n");
  EXPECT_EQ(view.stderr_excerpt, "***REDACTED***\n");
  EXPECT_TRUE(view.stdout_excerpt->ends_with("***REDACTED***\n***REDACTED***\n"));

  std::string everything = encode_text(view);
  for (const core::RunEventRecord& event : events(view.id)) everything += encode_text(event);
  const auto lines = await(server()->runs.log(admin(), view.id, {}));
  everything += lines->content;
  for (const char* part : {"horse battery", "staple", "hunter2"}) {
    EXPECT_FALSE(everything.contains(part)) << part;
  }
  EXPECT_TRUE(everything.contains(R"("TOKEN":"***REDACTED***")"));
}

TEST_P(Commands, AVariableThatWasConfiguredIsNamedInTheEventsAndNotShown) {
  StartRun wanted = program({"true"});
  wanted.env = bj::object{{"DSN", "mysql://root:oneoff-dsn@h/d"}, {"MODE", "oneoff-mode"}};
  const RunView view = ran(std::move(wanted));
  std::string everything = encode_text(view);
  for (const core::RunEventRecord& event : events(view.id)) everything += encode_text(event);
  EXPECT_FALSE(everything.contains("oneoff")) << everything;
  EXPECT_TRUE(everything.contains(R"("DSN":"***REDACTED***")"));
  EXPECT_TRUE(everything.contains(R"("BERTH_RUN_ID":")" + view.id.str() + "\""));
}

TEST_P(Commands, ANulInWhatAnAgentSaysEndsItsRunAllTheSame) {
  CreateAgent claude;
  claude.name = "Claude";
  claude.adapter_type = core::AdapterType::claude_local;
  const auto made = await(server()->agents.create(admin(), *company_, std::move(claude)));
  ASSERT_TRUE(made) << made.error().message;
  const RunView view = ran(by(made->value.id, shell(R"(
    printf '%s\n' '{"type":"system","subtype":"init","session_id":"a\u0000b","model":"m\u0000"}'
    printf '%s\n' '{"type":"result","is_error":true,"result":"bad\u0000thing"}')")));
  EXPECT_EQ(view.status, RunState::failed);
  EXPECT_EQ(view.error, "bad?thing");
  EXPECT_EQ(view.session_id_after, std::nullopt);
  EXPECT_EQ(view.result_json->at("model"), "m?");
}

TEST_P(Commands, ACancelEndsARunWhoseDriverSaysWhatCannotBeStored) {
  server().use_boxes().signal_told = std::string{"KILL\0ed", 7};
  StartRun wanted = program({"sleep", "60"});
  wanted.environment_id = put_boxes().id;
  const core::RunId id = start(std::move(wanted));
  reaches(id, RunState::running);
  cancel(id);
  const RunView view = ended(id);
  EXPECT_EQ(view.status, RunState::cancelled);
  EXPECT_EQ(view.signal, std::nullopt);
}

TEST_P(Commands, ARunWhoseSecretCannotBeReadFailsBeforeItsCommandStarts) {
  const auto with = [&](const std::string& name) {
    StartRun wanted = program({"true"});
    wanted.env = bj::object{{"TOKEN", reference(name, "some value")}};
    return wanted;
  };
  const core::AgentId ada = made_agent("Ada");
  set_status(ada, core::AgentStatus::paused);
  const core::RunId disabled = start(by(ada, with("disabled")));
  const core::RunId deleted = start(by(ada, with("deleted")));
  UpdateSecret change;
  change.status = {true, core::SecretStatus::disabled};
  EXPECT_WORKS(await(server()->secrets.update(admin(), secrets_.at("disabled"), change)));
  EXPECT_WORKS(write([&](store::Session& s) {
    return store::query(s, "delete from company_secrets where id = $1", secrets_.at("deleted"));
  }));
  set_status(ada, core::AgentStatus::idle);
  for (const auto& [id, code] :
       {std::pair{disabled, "secret_inactive"}, std::pair{deleted, "secret_not_found"}}) {
    const RunView view = ended(id);
    EXPECT_EQ(view.status, RunState::failed);
    EXPECT_EQ(view.error_code, code);
    EXPECT_EQ(view.process_pid, std::nullopt);
    EXPECT_EQ(view.environment_lease->status, LeaseState::failed);
  }
}

TEST_P(Commands, ARunThatIsOverCanBeStartedAgain) {
  const RunView first = ran(shell("echo again; exit 1"));
  const auto again = await(server()->runs.retry(admin(), first.id));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->retry_of_run_id, first.id);
  EXPECT_EQ(said(ended(again->id).id), "again\n");

  const core::RunId running = start(program({"sleep", "60"}));
  EXPECT_FAILS(await(server()->runs.retry(admin(), running)), Errc::conflict);
  end({running});
}

TEST_P(Commands, ARetryIsGivenWhatTheRunWasGiven) {
  StartRun given = shell("cat; echo \" $WORD $KEY\"; pwd");
  given.stdin_text = "stdin";
  given.env = bj::object{{"WORD", "plain"}, {"KEY", reference("used", "s3cret value")}};
  given.cwd = "/usr";
  given.name = "twice";
  const RunView first = ran(given);
  EXPECT_EQ(said(first.id), "stdin plain ***REDACTED***\n/usr\n");
  const auto again = await(server()->runs.retry(admin(), first.id));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->name, "twice");
  EXPECT_EQ(again->command, first.command);
  EXPECT_EQ(said(ended(again->id).id), said(first.id));
  // Also the retry of a retry, because each has its own input.
  const auto third = await(server()->runs.retry(admin(), again->id));
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(said(ended(third->id).id), said(first.id));

  EXPECT_WORKS(write([&](store::Session& s) {
    return store::query(s, "delete from heartbeat_run_inputs where run_id = $1", first.id);
  }));
  const auto lost = await(server()->runs.retry(admin(), first.id));
  EXPECT_FAILS(lost, Errc::unprocessable);
}

TEST_P(Commands, WhoeverWaitsForARunHearsWhenItsStateChanges) {
  set_metadata(local(), {{"maxConcurrentRuns", 1}});
  const core::RunId first = start(program({"sleep", "60"}));
  reaches(first, RunState::running);
  const auto end_of_first = begin(server()->runs.get(admin(), first, 50s));
  const core::RunId second = start(program({"true"}));
  const auto start_of_second = begin(server()->runs.get(admin(), second, 50s));
  EXPECT_EQ(await(server()->runs.get(admin(), second, 30ms))->status, RunState::queued)
      << "a wait that ends without a change answers all the same";
  EXPECT_FALSE(end_of_first->result);
  EXPECT_FALSE(start_of_second->result);
  cancel(first);
  EXPECT_EQ(finish(end_of_first)->status, RunState::cancelled);
  EXPECT_NE(finish(start_of_second)->status, RunState::queued);
  ended(second);
}

TEST_P(Commands, TheLogIsReadFromAnyPlaceInBothForms) {
  const std::string all = "first\nnext\n\xc3\xa4\xff\nlast\n";
  const RunView view =
      ran(shell("echo first; sleep 0.05; echo next >&2; sleep 0.05; printf '\\303\\244\\377\\n';"
                " sleep 0.05; echo last"));
  EXPECT_EQ(view.log_bytes, static_cast<std::int64_t>(all.size()));
  const auto read_all = [&](std::int64_t from, std::size_t bytes_max,
                            std::optional<OutputStream> stream) {
    std::string text;
    LogText page{.run_id = view.id, .content = "", .next_offset = from};
    for (int reads = 0; !page.eof && reads < 1000; ++reads) {
      const LogRead wanted{.offset = page.next_offset,
                           .bytes_max = bytes_max,
                           .format = LogFormat::raw,
                           .stream = stream};
      page = *await(server()->runs.log(admin(), view.id, wanted));
      text += page.content;
    }
    EXPECT_EQ(page.next_offset, view.log_bytes);
    return text;
  };
  for (const std::size_t bytes_max : {1UL, 3UL, 512UL}) {
    EXPECT_EQ(read_all(0, bytes_max, std::nullopt), all);
    EXPECT_EQ(read_all(0, bytes_max, OutputStream::stderr_), "next\n");
    EXPECT_EQ(read_all(8, bytes_max, std::nullopt), all.substr(8));
  }
  const auto lines = await(server()->runs.log(admin(), view.id, {}));
  EXPECT_TRUE(lines->eof);
  std::string text;
  std::int64_t seq = 0;
  std::istringstream each{lines->content};
  for (std::string line; std::getline(each, line);) {
    const auto record = parse_json(line);
    ASSERT_TRUE(record) << line;
    EXPECT_EQ(record->at("seq").as_int64(), ++seq);
    EXPECT_EQ(record->at("stream").as_string(), seq == 2 ? "stderr" : "stdout");
    text += record->at("chunk").as_string();
  }
  EXPECT_EQ(text, "first\nnext\n\xc3\xa4\xef\xbf\xbd\nlast\n");
}

}  // namespace
}  // namespace berth::engine
