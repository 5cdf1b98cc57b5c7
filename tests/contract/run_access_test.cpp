#include "base/async/task_group.hpp"
#include "base/digest.hpp"
#include "contract/engine_fixture.hpp"
#include "engine/journal.hpp"
#include "engine/runs/run_inputs.hpp"
#include "engine/runs/run_output.hpp"
#include "engine/secrets/environment_secrets.hpp"
#include "engine/secrets/sealed_settings.hpp"
#include "engine/secrets/vault_key.hpp"
#include "store/activity.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/runs.hpp"
#include "store/secrets.hpp"
#include "store/settings.hpp"

namespace berth::engine {
namespace {

// A company with an agent in a run that executes in an environment; both have secrets among their
// variables.
class RunAccess : public EngineContract {
 protected:
  void SetUp() override {
    EngineContract::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(run(adopt_vault_key(engine_->services)));
    const auto company = run(engine_->companies.create(admin(), {"Acme", std::nullopt}));
    ASSERT_TRUE(company) << company.error().message;
    company_ = company->value.id;
    agent_ = made_agent("Ada", bj::object{{"A", reference("of-agent")}});
    CreateEnvironment box = ssh("box");
    box.env_vars = bj::object{{"B", reference("of-environment")}, {"PLAIN", "1"}};
    const auto environment = run(engine_->environments.create(admin(), *company_, box));
    ASSERT_TRUE(environment) << environment.error().message;
    environment_ = environment->value.id;
    run_ = working_run(*agent_);
  }

  bj::object reference(const std::string& name) {
    const auto secret = run(engine_->secrets.create(admin(), *company_, secret_named(name)));
    EXPECT_WORKS(secret);
    ids_.insert_or_assign(name, secret->id);
    return {{"type", "secret_ref"}, {"secretId", secret->id.str()}};
  }

  core::AgentId made_agent(const std::string& name, bj::object env) {
    CreateAgent wanted;
    wanted.name = name;
    wanted.adapter_type = core::AdapterType::process;
    wanted.adapter_config = bj::object{{"command", "true"}, {"env", std::move(env)}};
    const auto made = run(engine_->agents.create(admin(), *company_, std::move(wanted)));
    EXPECT_WORKS(made);
    return made->value.id;
  }

  core::LeaseId given_lease(const core::RunId& run) {
    const auto made = write([&](store::Session& s) -> Result<core::LeaseId> {
      BERTH_TRY(const auto place,
                store::find_environment(s, core::Reach::everything(), *environment_));
      core::LeaseRecord lease = StoreContract::lease(place.value, core::LeaseState::active);
      lease.heartbeat_run_id = run;
      lease.driver = place.value.driver;
      BERTH_TRY(lease.teardown.config, spelled_out(s, place.value.id, place.value.config));
      BERTH_DO(store::insert_lease(s, lease));
      return lease.id;
    });
    EXPECT_WORKS(made);
    return *made;
  }

  core::Run working_run(const core::AgentId& agent,
                        core::RunState status = core::RunState::running) {
    core::Run made = StoreContract::run(*company_);
    made.node_id = node_;
    made.agent_id = agent;
    made.environment_id = environment_;
    made.status = status;
    made.lease_id = given_lease(made.id);
    EXPECT_WORKS(write([&](store::Session& s) { return store::insert_run(s, made); }));
    return made;
  }

  void end_run(const core::RunId& id) {
    EXPECT_WORKS(write([&](store::Session& s) -> Result<> {
      BERTH_TRY(auto row, store::find_run(s, core::Reach::everything(), id));
      BERTH_DO(store::move_run(s, std::move(row), core::RunEvent::exited_zero, now()));
      return {};
    }));
  }

  std::string token(const core::Run& of) {
    const auto made = run(engine_->run_tokens.make(of, core::AdapterType::process));
    EXPECT_TRUE(made) << made.error().message;
    return std::string{made->reveal()};
  }

  void expect_refused(const std::string& token) {
    const auto caller = run(engine_->run_tokens.identify(token));
    ASSERT_FALSE(caller) << token;
    EXPECT_EQ(caller.error().code, Errc::unauthenticated);
    EXPECT_EQ(caller.error().message, unknown_token().error().message) << token;
  }

  // What a process of this run may do.
  core::Call call_of(const core::Run& of) {
    auto caller = run(engine_->run_tokens.identify(token(of)));
    EXPECT_WORKS(caller);
    return {.who = *caller, .run_id = caller->run_id};
  }

  core::NodeId node_ = fresh<core::NodeId>();
  std::optional<core::CompanyId> company_;
  std::optional<core::AgentId> agent_;
  std::optional<core::EnvironmentId> environment_;
  std::optional<core::Run> run_;
  std::map<std::string, core::SecretId> ids_;
};

class RunTokensTest : public RunAccess {};
BERTH_ON_BOTH_ENGINES(RunTokensTest);

TEST_P(RunTokensTest, ARunThatACallerOnlyNamesIsWrittenDownIfItIsOneOfItsOwn) {
  const auto vouched = [&](const core::Caller& who, const core::RunId& named) {
    return *read([&](store::Session& s) {
      return vouched_run(s, {.who = who, .run_id = named}, *company_);
    });
  };
  const auto agent = [&](const core::AgentId& id) {
    return core::Caller{
        .kind = core::CallerKind::agent_key, .company_id = company_, .agent_id = id};
  };
  const core::AgentId bob = made_agent("Bob", {});
  EXPECT_EQ(vouched(admin().who, run_->id), run_->id);
  EXPECT_EQ(vouched(agent(*agent_), run_->id), run_->id);
  EXPECT_EQ(vouched(agent(bob), run_->id), std::nullopt) << "another agent's";
  EXPECT_EQ(vouched(admin().who, fresh<core::RunId>()), std::nullopt) << "no run at all";
  const core::CompanyId other = given_company("Other").id;
  EXPECT_EQ(vouched(admin().who, given_run(other).id), std::nullopt) << "another company's";
}

TEST_P(RunTokensTest, ATokenNamesItsRunItsAgentAndItsCompany) {
  const auto caller = run(engine_->run_tokens.identify(token(*run_)));
  ASSERT_TRUE(caller) << caller.error().message;
  EXPECT_EQ(caller->kind, core::CallerKind::agent_key);
  EXPECT_EQ(caller->company_id, company_);
  EXPECT_EQ(caller->agent_id, agent_);
  EXPECT_EQ(caller->run_id, run_->id);
}

TEST_P(RunTokensTest, AnAgentThatStartsItselfChoosesNeitherItsPlaceNorItsVariables) {
  const core::Call call = call_of(*run_);
  InvokeAgent elsewhere;
  elsewhere.environment_id = environment_;
  EXPECT_FAILS(run(engine_->runs.invoke(call, *agent_, elsewhere)), Errc::forbidden);
  InvokeAgent with_more;
  with_more.env = bj::object{{"BASH_ENV", "/tmp/x"}};
  EXPECT_FAILS(run(engine_->runs.invoke(call, *agent_, with_more)), Errc::forbidden);
  InvokeAgent as_it_is;
  as_it_is.env = bj::object{};
  as_it_is.prompt = "go on";
  EXPECT_WORKS(run(engine_->runs.invoke(call, *agent_, as_it_is)));
  EXPECT_WORKS(run(engine_->runs.invoke(admin(), *agent_, with_more)));
}

TEST_P(RunTokensTest, WhatAnAgentGivesToItsNextTurnIsSmall) {
  const core::Call call = call_of(*run_);
  const auto refused = [&](const core::Call& by, const InvokeAgent& wanted, const char* field) {
    const auto made = run(engine_->runs.invoke(by, *agent_, wanted));
    ASSERT_FALSE(made) << field;
    EXPECT_EQ(made.error().code, Errc::body_too_large);
    EXPECT_TRUE(made.error().message.starts_with(field)) << made.error().message;
    EXPECT_EQ(made.error().issues.at(0).path, field);
  };
  InvokeAgent large;
  large.payload = bj::object{{"x", std::string(960 << 10, 'x')}};
  refused(call, large, "/payload");
  refused(admin(), large, "/payload");
  large.payload = bj::object{{"x", std::string(17 << 10, 'x')}};
  refused(call, large, "/payload");
  EXPECT_WORKS(run(engine_->runs.invoke(admin(), *agent_, large)));
  InvokeAgent long_prompt;
  long_prompt.prompt = std::string((64 << 10) + 1, 'x');
  refused(call, long_prompt, "/prompt");
  InvokeAgent long_reason;
  long_reason.reason = std::string((4 << 10) + 1, 'x');
  refused(call, long_reason, "/reason");
  InvokeAgent small;
  small.payload = bj::object{{"x", std::string(15 << 10, 'x')}};
  EXPECT_WORKS(run(engine_->runs.invoke(call, *agent_, small)));
}

TEST_P(RunTokensTest, AnAgentThatWakesItselfInALoopIsLimitedAndReportedOnce) {
  UpdateSettings change;
  change.agent_wakeups_per_minute = {true, 6};
  ASSERT_TRUE(run(engine_->settings.update(admin(), change)));
  const core::Call call = call_of(*run_);
  const auto wake = [&] { return run(engine_->runs.invoke(call, *agent_, {})); };
  for (int i = 0; i < 6; ++i) EXPECT_WORKS(wake());
  for (int i = 0; i < 50; ++i) EXPECT_FAILS(wake(), Errc::rate_limited);
  EXPECT_EQ(number("select count(*) from activity where action = 'agent.wakeups_limited'"), 1);
  EXPECT_WORKS(run(engine_->runs.invoke(admin(), *agent_, {}))) << "an operator is not limited";
  clock_.advance(std::chrono::seconds{10});
  EXPECT_WORKS(wake());
  EXPECT_FAILS(wake(), Errc::rate_limited);
  EXPECT_EQ(number("select count(*) from activity where action = 'agent.wakeups_limited'"), 1);
}

TEST_P(RunTokensTest, HowOtherAgentsAreStartedIsNotShown) {
  CreateAgent wanted;
  wanted.name = "Other";
  wanted.adapter_type = core::AdapterType::process;
  wanted.adapter_config = bj::object{{"command", "/opt/private"}};
  const auto other = run(engine_->agents.create(admin(), *company_, wanted));
  ASSERT_TRUE(other) << other.error().message;
  const core::Call call = call_of(*run_);
  const auto seen = run(engine_->agents.get(call, other->value.id));
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_TRUE(seen->value.adapter_config.empty());
  EXPECT_EQ(run(engine_->agents.get(call, *agent_))->value.adapter_config,
            run(engine_->agents.get(admin(), *agent_))->value.adapter_config);
  const auto listed = run(engine_->agents.list(call, *company_, {}));
  ASSERT_TRUE(listed) << listed.error().message;
  for (const core::Agent& agent : listed->rows) {
    EXPECT_EQ(agent.adapter_config.empty(), agent.id != *agent_) << agent.name;
  }
}

TEST_P(RunTokensTest, AnAgentThatStartsItselfInACircleIsStopped) {
  const core::Call call = call_of(*run_);
  for (int i = 0; i < 20; ++i) EXPECT_WORKS(run(engine_->runs.invoke(call, *agent_, {})));
  EXPECT_FAILS(run(engine_->runs.invoke(call, *agent_, {})), Errc::overloaded);
  EXPECT_WORKS(run(engine_->runs.invoke(admin(), *agent_, {})));
}

TEST_P(RunTokensTest, ATokenIsTheSameHoweverOftenAndOnWhicheverServerItIsMade) {
  const std::string first = token(*run_);
  clock_.advance(std::chrono::hours{1});
  EXPECT_EQ(token(*run_), first);
  RunTokens elsewhere{engine_->services};
  EXPECT_EQ(run(elsewhere.make(*run_, core::AdapterType::process))->reveal(), first);
  EXPECT_TRUE(run(elsewhere.identify(first)));
}

TEST_P(RunTokensTest, TheClaimsAreThoseThatAgentsRead) {
  const std::string made = token(*run_);
  const std::size_t first = made.find('.');
  const std::size_t second = made.rfind('.');
  EXPECT_EQ(from_base64url(made.substr(0, first)), R"({"alg":"HS256","typ":"JWT"})");
  const auto claims = parse_json(*from_base64url(made.substr(first + 1, second - first - 1)));
  ASSERT_TRUE(claims);
  EXPECT_EQ(claims->at("sub").as_string(), agent_->str());
  EXPECT_EQ(claims->at("company_id").as_string(), company_->str());
  EXPECT_EQ(claims->at("run_id").as_string(), run_->id.str());
  EXPECT_EQ(claims->at("adapter_type").as_string(), "process");
  EXPECT_EQ(claims->at("iss").as_string(), "paperclip");
  EXPECT_EQ(claims->at("aud").as_string(), "paperclip-api");
  EXPECT_EQ(claims->at("exp").as_int64() - claims->at("iat").as_int64(), 48 * 3600);
}

TEST_P(RunTokensTest, ATokenEndsWithItsRun) {
  const std::string made = token(*run_);
  end_run(run_->id);
  expect_refused(made);
}

TEST_P(RunTokensTest, ATokenExpires) {
  const std::string made = token(*run_);
  clock_.advance(std::chrono::hours{47});
  EXPECT_WORKS(run(engine_->run_tokens.identify(made)));
  clock_.advance(std::chrono::hours{1});
  expect_refused(made);
}

TEST_P(RunTokensTest, ATokenOfADeletedRunIsRefused) {
  const std::string made = token(*run_);
  EXPECT_WORKS(
      write([&](store::Session& s) { return store::query(s, "delete from heartbeat_runs"); }));
  expect_refused(made);
}

TEST_P(RunTokensTest, ATokenIsOfNoUseWhenTheRunIsAnotherAgents) {
  const std::string made = token(*run_);
  const core::AgentId other = made_agent("Bob", {});
  EXPECT_WORKS(write([&](store::Session& s) {
    return store::query(s, "update heartbeat_runs set agent_id = $1", other);
  }));
  expect_refused(made);
}

TEST_P(RunTokensTest, ARunWithoutAnAgentGetsNone) {
  core::Run bare = *run_;
  bare.agent_id.reset();
  EXPECT_FALSE(run(engine_->run_tokens.make(bare, core::AdapterType::process)));
}

TEST_P(RunTokensTest, ATokenThatWasTamperedWithIsRefused) {
  const std::string made = token(*run_);
  const std::size_t first = made.find('.');
  const std::size_t second = made.rfind('.');
  const std::string header = made.substr(0, first);
  const std::string payload = made.substr(first + 1, second - first - 1);
  const std::string signature = made.substr(second + 1);
  for (const std::size_t at : {first + 1, first + 20, second - 1, second + 1, second + 20}) {
    std::string altered = made;
    altered[at] = altered[at] == 'A' ? 'B' : 'A';
    expect_refused(altered);
  }
  const core::Run other = working_run(*agent_);
  const std::string others = token(other);
  expect_refused(header + "." + payload + others.substr(others.rfind('.')));
  const auto encoded = [](std::string_view text) {
    return base64url({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
  };
  const std::string none = encoded(R"({"alg":"none","typ":"JWT"})");
  const std::string foreign = base64url(hmac_sha256("another key", header + "." + payload));
  for (const std::string& odd :
       {std::string{}, std::string{"."}, std::string{".."}, header, header + ".", header + "..",
        header + "." + signature, header + "." + payload, header + "." + payload + ".",
        header + "." + payload + "." + foreign, none + "." + payload + ".",
        none + "." + payload + "." + signature, made + ".", made + "A", " " + made,
        header + "." + std::string(100'000, 'A') + "." + signature}) {
    expect_refused(odd);
  }
}

TEST_P(RunTokensTest, TwoServersThatStartTogetherAgreeOnOneKey) {
  RunTokens one{engine_->services};
  RunTokens two{engine_->services};
  const auto first = run(one.make(*run_, core::AdapterType::process));
  const auto second = run(two.make(*run_, core::AdapterType::process));
  EXPECT_EQ(first->reveal(), second->reveal());
  EXPECT_EQ(number("select count(*) from settings where name = 'sealed.run_token_key'"), 1);
}

TEST_P(RunTokensTest, TheKeyIsSealedInTheStoreAndCountedAmongThoseInUse) {
  token(*run_);
  const auto setting =
      read([](store::Session& s) { return store::find_sealed_setting(s, "run_token_key"); });
  ASSERT_TRUE(setting && *setting);
  EXPECT_EQ((*setting)->value.key_id, vault_->current_key_id());
  EXPECT_WORKS(
      write([](store::Session& s) { return store::query(s, "delete from company_secrets"); }));
  const auto in_use = read([](store::Session& s) { return store::key_ids_in_use(s); });
  EXPECT_EQ(*in_use, std::vector<std::string>{vault_->current_key_id()});
}

TEST_P(RunTokensTest, ATokenOutlivesARotationOfTheMasterKey) {
  const std::string made = token(*run_);
  const std::string old_key = vault_->current_key_id();
  const auto done = run(engine_->secrets.rekey(admin()));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE(vault_->has_key(old_key));
  RunTokens restarted{engine_->services};
  EXPECT_TRUE(run(restarted.identify(made)));
  EXPECT_EQ(run(restarted.make(*run_, core::AdapterType::process))->reveal(), made);
}

class RunInputsTest : public RunAccess {
 protected:
  core::RunInput input() const {
    return {.run_id = run_->id, .env = {{"TOKEN", "hunter2"}}, .stdin_text = "typed"};
  }
  store::SealedInput stored() {
    const auto sealed = write([&](store::Session& s) -> Result<store::SealedInput> {
      BERTH_TRY(auto made, seal_run_input(s, engine_->services, input()));
      BERTH_DO(store::insert_run_input(s, made));
      return made;
    });
    EXPECT_WORKS(sealed);
    return *sealed;
  }
};
BERTH_ON_BOTH_ENGINES(RunInputsTest);

TEST_P(RunInputsTest, AnInputComesBackAsItWasGiven) {
  const store::SealedInput sealed = stored();
  EXPECT_FALSE(sealed.material.contains("hunter2"));
  const auto opened = unseal_run_input(engine_->services, sealed);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(encode_text(*opened), encode_text(input()));
}

TEST_P(RunInputsTest, AnInputDoesNotOpenForAnotherRun) {
  store::SealedInput sealed = stored();
  sealed.run_id = working_run(*agent_).id;
  EXPECT_FAILS(unseal_run_input(engine_->services, sealed), Errc::unseal_failed);
}

TEST_P(RunInputsTest, AnInputOutlivesARotationOfTheMasterKey) {
  const store::SealedInput before = stored();
  const auto done = run(engine_->secrets.rekey(admin()));
  ASSERT_TRUE(done) << done.error().message;
  const auto after = read([&](store::Session& s) { return store::find_run_input(s, run_->id); });
  ASSERT_TRUE(after && *after);
  EXPECT_NE((*after)->key_id, before.key_id);
  EXPECT_EQ((*after)->key_id, vault_->current_key_id());
  const auto opened = unseal_run_input(engine_->services, **after);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->stdin_text, "typed");
}

TEST_P(RunInputsTest, ARotationThatBreaksAtAnyStatementIsFinishedByTheNext) {
  stored();
  const std::string made = token(*run_);
  int broken = 0;
  for (int statement = 1; statement < 100; ++statement) {
    failing_->fail_at(statement);
    const auto done = run(engine_->secrets.rekey(admin()));
    failing_->fail_at(0);
    if (done) break;
    ++broken;
    const auto now = read([&](store::Session& s) { return store::find_run_input(s, run_->id); });
    EXPECT_WORKS(unseal_run_input(engine_->services, **now));
    RunTokens restarted{engine_->services};
    EXPECT_WORKS(run(restarted.identify(made)));
  }
  EXPECT_GT(broken, 5);
  const auto in_use = read([](store::Session& s) { return store::key_ids_in_use(s); });
  EXPECT_EQ(*in_use, std::vector<std::string>{vault_->current_key_id()});
}

class Sink final : public RedactionSink {
 public:
  void hide(const core::RunId& run, const Secret& value) override {
    hidden.emplace_back(run, value.reveal());
  }
  std::vector<std::pair<core::RunId, std::string>> hidden;
};

class RunSecretsTest : public RunAccess {
 protected:
  RunSecrets secrets() { return {engine_->services, engine_->secrets, sink_, node_, {}}; }
  auto list(const core::Call& call) {
    RunSecrets asked = secrets();
    return run(asked.list(call));
  }
  auto value(const core::Call& call, const std::string& key) {
    RunSecrets asked = secrets();
    return run(asked.read(call, key));
  }
  Sink sink_;
};
BERTH_ON_BOTH_ENGINES(RunSecretsTest);

TEST_P(RunSecretsTest, ARunSeesTheSecretsOfItsVariablesAndNoOthers) {
  reference("unbound");
  const auto seen = list(call_of(*run_));
  ASSERT_TRUE(seen) << seen.error().message;
  std::vector<std::string> keys;
  for (const RunSecret& secret : seen->secrets) keys.push_back(secret.key);
  // The environment's private key is bound to its config, not to a variable.
  EXPECT_EQ(keys, (std::vector<std::string>{"of-agent", "of-environment"}));
  EXPECT_EQ(seen->secrets[0].delivery, SecretDelivery::env);
  EXPECT_EQ(seen->secrets[0].resolved_version, 1);
  EXPECT_EQ(seen->secrets[0].version_selector, "latest");
  EXPECT_EQ(seen->secrets[0].secret_ref.at("secretId").as_string(), ids_.at("of-agent").str());
  EXPECT_EQ(number("select count(*) from activity where action = 'secret.access.listed'"), 1);
}

TEST_P(RunSecretsTest, AValueIsReadRecordedAndHidden) {
  const auto read_value = value(call_of(*run_), "of-environment");
  ASSERT_TRUE(read_value) << read_value.error().message;
  EXPECT_EQ(read_value->value, "the value of of-environment");
  EXPECT_EQ(read_value->version, 1);
  ASSERT_EQ(sink_.hidden.size(), 1U);
  EXPECT_EQ(sink_.hidden[0].first, run_->id);
  EXPECT_EQ(sink_.hidden[0].second, "the value of of-environment");

  const auto events = run(engine_->secrets.access_events(admin(), ids_.at("of-environment"), {}));
  ASSERT_EQ(events->rows.size(), 1U);
  EXPECT_EQ(events->rows[0].consumer_type, core::SecretConsumer::agent_api);
  EXPECT_EQ(events->rows[0].consumer_id, agent_->str());
  EXPECT_EQ(events->rows[0].heartbeat_run_id, run_->id);
  EXPECT_EQ(number("select count(*) from activity where action = 'secret.value.read'"), 1);
}

TEST_P(RunSecretsTest, AValueThatIsReadAgainAndAgainIsHiddenOnce) {
  RunOutput output{
      engine_->services, *logs_, *run_, node_, core::AgentOutput{core::AdapterType::process}, 0};
  const Secret value{std::string(4000, 'x') + "\"the value\""};
  for (int i = 0; i < 400; ++i) output.hide(value);
  EXPECT_EQ(output.sets_made(), 1);
  output.hide(Secret{"another value"});
  EXPECT_EQ(output.sets_made(), 2);
}

TEST_P(RunSecretsTest, ARunThatReadsWithoutEndIsLimited) {
  RunSecrets asked = secrets();
  const core::Call call = call_of(*run_);
  int granted = 0;
  for (int i = 0; i < 400; ++i) {
    const auto read_value = run(asked.read(call, "of-agent"));
    if (!read_value) EXPECT_EQ(read_value.error().code, Errc::rate_limited);
    granted += read_value ? 1 : 0;
  }
  EXPECT_EQ(granted, 120);
  clock_.advance(std::chrono::seconds{2});
  EXPECT_WORKS(run(asked.read(call, "of-agent")));
}

TEST_P(RunSecretsTest, AServerThatTakesTheRunOverKnowsWhatToHide) {
  ASSERT_TRUE(value(call_of(*run_), "of-agent"));
  ASSERT_TRUE(value(call_of(*run_), "of-agent"));
  RotateSecret rotation{Secret{"rotated"}, std::nullopt};
  ASSERT_TRUE(run(engine_->secrets.rotate(admin(), ids_.at("of-agent"), std::move(rotation))));
  ASSERT_EQ(value(call_of(*run_), "of-agent")->value, "rotated");
  const auto values = run(values_given_to(engine_->services, run_->id));
  ASSERT_TRUE(values) << values.error().message;
  ASSERT_EQ(values->size(), 2U);
  EXPECT_EQ((*values)[0].reveal(), "the value of of-agent");
  EXPECT_EQ((*values)[1].reveal(), "rotated");
  EXPECT_TRUE(run(values_given_to(engine_->services, working_run(*agent_).id))->empty());
}

TEST_P(RunSecretsTest, ThroughAnotherServerAValueLeavesOnceTheServerOfTheRunHidesIt) {
  Sink elsewhere;
  RunSecrets other{engine_->services, engine_->secrets, elsewhere, fresh<core::NodeId>(),
                   DiskReserve{}};
  RunSecrets ours = secrets();
  const core::Call call = call_of(*run_);
  loop_.restart();
  TaskGroup watching{loop_.get_executor()};
  TaskGroup asking{loop_.get_executor()};
  watching.start("watch", ours.watch());
  std::optional<Result<RunSecretValue>> got;
  std::size_t hidden_by_then = 0;
  asking.start(
      "read",
      [](auto read, auto& outcome, Sink& sink, std::size_t& hidden, TaskGroup& others) -> Task<> {
        outcome.emplace(co_await std::move(read));
        hidden = sink.hidden.size();
        co_return co_await others.stop();
      }(other.read(call, "of-agent"), got, sink_, hidden_by_then, watching));
  loop_.run();
  ASSERT_TRUE(got && *got) << (*got).error().message;
  EXPECT_EQ((*got)->value, "the value of of-agent");
  EXPECT_EQ(hidden_by_then, 1U);
  EXPECT_EQ(sink_.hidden.at(0).second, "the value of of-agent");
  EXPECT_TRUE(elsewhere.hidden.empty());
}

TEST_P(RunSecretsTest, WhatIsNotBoundIsTheSameAsWhatIsNotThere) {
  reference("unbound");
  const core::Call call = call_of(*run_);
  const auto unbound = value(call, "unbound");
  const auto missing = value(call, "no-such-secret");
  ASSERT_FALSE(unbound);
  ASSERT_FALSE(missing);
  EXPECT_EQ(unbound.error().code, Errc::secret_not_found);
  EXPECT_EQ(unbound.error().message, missing.error().message);
  EXPECT_TRUE(sink_.hidden.empty());
}

TEST_P(RunSecretsTest, ADisabledSecretIsNotThere) {
  UpdateSecret change;
  change.status = {true, core::SecretStatus::disabled};
  ASSERT_TRUE(run(engine_->secrets.update(admin(), ids_.at("of-agent"), change)));
  EXPECT_FAILS(value(call_of(*run_), "of-agent"), Errc::secret_not_found);
  EXPECT_EQ(list(call_of(*run_))->secrets.size(), 1U);
}

TEST_P(RunSecretsTest, OnlyARunningRunMayRead) {
  for (const core::RunState state : {core::RunState::queued, core::RunState::starting}) {
    const core::Call call = call_of(working_run(*agent_, state));
    EXPECT_FAILS(value(call, "of-agent"), Errc::forbidden);
    EXPECT_FAILS(list(call), Errc::forbidden);
  }
  const core::Call late = call_of(*run_);
  end_run(run_->id);
  EXPECT_FAILS(value(late, "of-agent"), Errc::forbidden);
}

TEST_P(RunSecretsTest, WithoutTheTokenOfARunNobodyMayRead) {
  const core::Call key{
      .who = {.kind = core::CallerKind::agent_key, .company_id = company_, .agent_id = agent_},
      .run_id = run_->id};
  EXPECT_FAILS(list(key), Errc::forbidden);
  EXPECT_FAILS(value(key, "of-agent"), Errc::forbidden);
  EXPECT_FAILS(value(admin(), "of-agent"), Errc::forbidden);
}

TEST_P(RunSecretsTest, AReadThatBreaksAtAnyStatementGivesNoValueAway) {
  const core::Call call = call_of(*run_);
  int broken = 0;
  for (int statement = 1; statement < 50; ++statement) {
    failing_->fail_at(statement);
    const auto got = value(call, "of-agent");
    failing_->fail_at(0);
    if (got) break;
    ++broken;
    EXPECT_TRUE(sink_.hidden.empty());
  }
  EXPECT_GT(broken, 5);
  EXPECT_EQ(sink_.hidden.size(), 1U);
  EXPECT_EQ(number("select count(*) from heartbeat_run_redactions"), 1);
}

}  // namespace
}  // namespace berth::engine
