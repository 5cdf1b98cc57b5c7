#include "contract/engine_fixture.hpp"
#include "store/runs.hpp"

// Who is responsible for a run, and the name under which users find it.
namespace berth::engine {
namespace {

class RunPeople : public EngineContract {
 protected:
  void SetUp() override {
    EngineContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    company_ = run(engine_->companies.create(admin(), {"Acme", std::nullopt}))->value.id;
    CreateAgent wanted;
    wanted.name = "Ada";
    wanted.adapter_type = core::AdapterType::process;
    wanted.adapter_config = bj::object{{"command", "true"}};
    const auto made = run(engine_->agents.create(admin(), *company_, std::move(wanted)));
    ASSERT_TRUE(made) << made.error().message;
    agent_ = made->value.id;
  }

  core::Run invoked(const core::Call& call) {
    const auto made = run(engine_->runs.invoke(call, *agent_, {}));
    EXPECT_WORKS(made);
    return *made;
  }
  NewToken token(CreateToken wanted) {
    auto made = run(engine_->tokens.create(admin(), *company_, std::move(wanted)));
    EXPECT_WORKS(made);
    return *std::move(made);
  }
  core::Call with(const std::string& key) { return {.who = *run(engine_->tokens.identify(key))}; }
  // The claim as text; nothing if it is null.
  std::optional<std::string> claimed(const core::Run& of) {
    const auto token = run(engine_->run_tokens.make(of, core::AdapterType::process));
    EXPECT_TRUE(token);
    const std::string text{token->reveal()};
    const std::size_t first = text.find('.');
    const auto claims =
        parse_json(*from_base64url(text.substr(first + 1, text.rfind('.') - first - 1)));
    const bj::value& claim = claims->at("responsible_user_id");
    return claim.is_null() ? std::nullopt : std::optional{std::string{claim.as_string()}};
  }

  std::optional<core::CompanyId> company_;
  std::optional<core::AgentId> agent_;
};
BERTH_ON_BOTH_ENGINES(RunPeople);

TEST_P(RunPeople, TheTokenOfARunNamesTheOperatorWhoStartedIt) {
  EXPECT_EQ(claimed(invoked(admin())), admin().who.actor_id());
  CreateToken wanted;
  wanted.name = "Eve";
  wanted.role = core::Role::operator_;
  const NewToken eve = token(wanted);
  const core::Run hers = invoked(with(eve.key));
  EXPECT_EQ(hers.responsible_user_id, "token:" + eve.token.id.str());
  EXPECT_EQ(claimed(hers), hers.responsible_user_id);
}

TEST_P(RunPeople, AnAgentWorksForWhoMadeItsKeyOrStartedItsRun) {
  CreateToken wanted;
  wanted.name = "Ada's";
  wanted.kind = core::TokenKind::agent_key;
  wanted.agent_id = agent_;
  const NewToken key = token(wanted);
  EXPECT_EQ(key.token.created_by, admin().who.actor_id());
  EXPECT_EQ(with(key.key).who.responsible_user(), admin().who.actor_id());

  core::Run parent = invoked(admin());
  EXPECT_WORKS(write([&](store::Session& s) {
    return store::query(s, "update heartbeat_runs set responsible_user_id = $2 where id = $1",
                        parent.id, std::string{"token:eve"});
  }));
  const auto bearer = run(engine_->run_tokens.make(parent, core::AdapterType::process));
  ASSERT_TRUE(bearer) << bearer.error().message;
  const auto caller = run(engine_->run_tokens.identify(std::string{bearer->reveal()}));
  ASSERT_TRUE(caller) << caller.error().message;
  EXPECT_EQ(caller->responsible_user(), "token:eve");

  parent.responsible_user_id.reset();
  EXPECT_EQ(claimed(parent), std::nullopt) << "a run from before the upgrade";
}

TEST_P(RunPeople, ANamedRunIsFoundByItsName) {
  StartRun wanted{.command = "true"};
  wanted.name = "nightly";
  const auto first = run(engine_->runs.start(admin(), *company_, wanted));
  EXPECT_WORKS(first);
  EXPECT_WORKS(run(engine_->runs.start(admin(), *company_, {.command = "true"})));
  const auto found =
      run(engine_->runs.list(admin(), *company_, store::RunFilter{.name = "nightly"}, {}));
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->rows.size(), 1U);
  EXPECT_EQ(found->rows.front().id, first->id);
  EXPECT_EQ(found->rows.front().name, "nightly");
  for (const char* taken : {"last", "01a1e4ea-133d-75e6-acdc-0c89d1f6918e"}) {
    wanted.name = taken;
    EXPECT_FAILS(run(engine_->runs.start(admin(), *company_, wanted)), Errc::unprocessable);
  }
  wanted.name = "a\nb";
  EXPECT_FAILS(run(engine_->runs.start(admin(), *company_, wanted)), Errc::validation_failed);
}

}  // namespace
}  // namespace berth::engine
