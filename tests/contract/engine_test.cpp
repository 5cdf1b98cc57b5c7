#include "contract/engine_fixture.hpp"
#include "engine/secrets/vault_key.hpp"
#include "engine/upkeep/janitor.hpp"
#include "store/nodes.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/secrets.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace berth::engine {
namespace {

class Reading : public EngineContract {
 protected:
  // A company with an environment whose private key is a secret, and the read that its driver would
  // make.
  void SetUp() override {
    EngineContract::SetUp();
    if (IsSkipped()) return;
    const auto company = run(engine_->companies.create(admin(), {"Acme", std::nullopt}));
    ASSERT_TRUE(company) << company.error().message;
    company_ = company->value.id;
    const auto made = run(engine_->environments.create(admin(), *company_, ssh("build")));
    ASSERT_TRUE(made) << made.error().message;
    environment_ = made->value.id;
    const bj::object& ref = made->value.config.at("privateKeySecretRef").as_object();
    secret_ = *core::SecretId::parse(std::string_view{ref.at("secretId").as_string()});
  }

  SecretRead read_of(std::string path = "privateKeySecretRef") const {
    return {*company_, *secret_, core::SecretTarget::environment, environment_->str(),
            std::move(path)};
  }

  std::vector<core::SecretAccessEvent> events() {
    const auto page = run(engine_->secrets.access_events(admin(), *secret_, {}));
    return page ? page->rows : std::vector<core::SecretAccessEvent>{};
  }

  std::optional<core::CompanyId> company_;
  std::optional<core::EnvironmentId> environment_;
  std::optional<core::SecretId> secret_;
};
BERTH_ON_BOTH_ENGINES(Reading);

TEST_P(Reading, ABoundSecretIsOpenedAndTheReadIsRecorded) {
  const auto value = run(engine_->secrets.resolve(admin(), read_of()));
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ(value->value.reveal(), "the key");
  EXPECT_EQ(value->version, 1);
  const auto seen = events();
  ASSERT_EQ(seen.size(), 1);
  EXPECT_EQ(seen[0].outcome, core::SecretAccessOutcome::success);
  EXPECT_EQ(seen[0].secret_version, 1);
  EXPECT_EQ(seen[0].consumer_id, environment_->str());
  EXPECT_TRUE(run(engine_->secrets.get(admin(), *secret_))->last_resolved_at);
}

TEST_P(Reading, AnUnboundPathIsRefusedAndTheAttemptIsRecorded) {
  const auto value = run(engine_->secrets.resolve(admin(), read_of("env.OTHER")));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, Errc::binding_missing);
  const auto seen = events();
  ASSERT_EQ(seen.size(), 1);
  EXPECT_EQ(seen[0].outcome, core::SecretAccessOutcome::failure);
  EXPECT_EQ(seen[0].error_code, "binding_missing");
}

TEST_P(Reading, ADisabledSecretIsRefused) {
  UpdateSecret change;
  change.status = {true, core::SecretStatus::disabled};
  ASSERT_TRUE(run(engine_->secrets.update(admin(), *secret_, change)));
  EXPECT_EQ(run(engine_->secrets.resolve(admin(), read_of())).error().code, Errc::secret_inactive);
}

TEST_P(Reading, AnotherCompanyCannotReadThroughTheBinding) {
  const auto other = run(engine_->companies.create(admin(), {"Other", std::nullopt}));
  SecretRead read = read_of();
  read.company_id = other->value.id;
  EXPECT_EQ(run(engine_->secrets.resolve(admin(), read)).error().code, Errc::secret_not_found);
}

TEST_P(Reading, ARotationIsSeenByTheNextReadAndAPinnedVersionIsNot) {
  RotateSecret rotation{Secret{"the next key"}, std::nullopt};
  ASSERT_TRUE(run(engine_->secrets.rotate(admin(), *secret_, std::move(rotation))));
  EXPECT_EQ(run(engine_->secrets.resolve(admin(), read_of()))->value.reveal(), "the next key");

  UpdateEnvironment pin;
  pin.env_vars = {true, bj::object{{"KEY", bj::object{{"type", "secret_ref"},
                                                      {"secretId", secret_->str()},
                                                      {"version", 1}}}}};
  ASSERT_TRUE(run(engine_->environments.update(admin(), *environment_, pin)));
  const auto pinned = run(engine_->secrets.resolve(admin(), read_of("env.KEY")));
  ASSERT_TRUE(pinned) << pinned.error().message;
  EXPECT_EQ(pinned->value.reveal(), "the key");
}

TEST_P(Reading, ARowMovedToAnotherSecretDoesNotOpen) {
  const auto other = run(engine_->secrets.create(admin(), *company_, secret_named("other")));
  EXPECT_WORKS(write([&](store::Session& s) {
    return store::query(s,
                        "update company_secret_versions set"
                        " material = (select v.material from company_secret_versions v"
                        " where v.secret_id = $2) where secret_id = $1",
                        *secret_, other->id);
  }));
  EXPECT_EQ(run(engine_->secrets.resolve(admin(), read_of())).error().code, Errc::unseal_failed);
}

TEST_P(Reading, ARekeyedSecretStillOpens) {
  ASSERT_TRUE(run(adopt_vault_key(engine_->services)));
  const auto done = run(engine_->secrets.rekey(admin()));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->resealed_versions, 1);
  EXPECT_EQ(run(engine_->secrets.resolve(admin(), read_of()))->value.reveal(), "the key");
}

class Guards : public Reading {
 protected:
  void hold(core::LeaseState state, core::LeasePolicy policy) {
    EXPECT_WORKS(write([&](store::Session& s) -> Result<> {
      BERTH_TRY(const auto found,
                store::find_environment(s, core::Reach::everything(), *environment_));
      core::LeaseRecord held = lease(found.value, state);
      held.lease_policy = policy;
      return store::insert_lease(s, held);
    }));
  }
};
BERTH_ON_BOTH_ENGINES(Guards);

TEST_P(Guards, APendingCleanupBlocksDeleteAndConfigChangesButNotARename) {
  hold(core::LeaseState::pending_cleanup, core::LeasePolicy::ephemeral);
  const auto removed = run(engine_->environments.remove(admin(), *environment_));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().facts.at("deleteBlockedReasons"),
            std::vector<std::string>{"pending_sandbox_cleanup"});

  UpdateEnvironment change;
  change.config = {true, bj::object{{"port", 23}}};
  EXPECT_EQ(run(engine_->environments.update(admin(), *environment_, change)).error().code,
            Errc::environment_pending_sandbox_cleanup);
  UpdateEnvironment rename;
  rename.name = {true, "renamed"};
  EXPECT_TRUE(run(engine_->environments.update(admin(), *environment_, rename)));
}

TEST_P(Guards, AnIdleSandboxBlocksDeleteUntilItIsGone) {
  EXPECT_WORKS(write([&](store::Session& s) -> Result<> {
    BERTH_TRY(const auto found,
              store::find_environment(s, core::Reach::everything(), *environment_));
    return store::insert_sandbox(s, sandbox(found.value, core::SandboxState::idle));
  }));
  const auto removed = run(engine_->environments.remove(admin(), *environment_));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, Errc::environment_delete_blocked);
  EXPECT_EQ(removed.error().facts.at("deleteBlockedReasons"),
            std::vector<std::string>{"reusable_sandbox_lease"});
  EXPECT_WORKS(write([&](store::Session& s) {
    return store::query(s, "update sandboxes set status = 'destroyed'");
  }));
  EXPECT_TRUE(run(engine_->environments.remove(admin(), *environment_)));
}

TEST_P(Guards, AnActiveEphemeralLeaseOutlivesItsEnvironment) {
  hold(core::LeaseState::active, core::LeasePolicy::ephemeral);
  const auto radius = run(engine_->environments.blast_radius(admin(), *environment_));
  EXPECT_TRUE(radius->can_delete);
  EXPECT_EQ(radius->active_runtime_use.active_lease_count, 1);
  EXPECT_EQ(radius->static_references.secret_binding_count, 1);
  ASSERT_TRUE(run(engine_->environments.remove(admin(), *environment_)));
  EXPECT_EQ(number("select count(*) from environment_leases where environment_id is null"), 1);
  EXPECT_EQ(number("select count(*) from company_secrets"), 0);
  EXPECT_EQ(number("select count(*) from company_secret_bindings"), 0);
}

class Failing : public EngineContract {
 protected:
  std::string everything() {
    std::string text;
    for (const char* table :
         {"companies", "agents", "environments", "company_secrets", "company_secret_versions",
          "company_secret_bindings", "activity", "tokens", "idempotency_answers", "settings"}) {
      text += std::string{table} + "=" +
              std::to_string(number("select count(*) from " + std::string{table})) + " ";
    }
    return text;
  }
};
BERTH_ON_BOTH_ENGINES(Failing);

TEST_P(Failing, AUseCaseThatBreaksAtAnyStatementLeavesNothing) {
  const auto company = run(engine_->companies.create(admin(), {"Acme", std::nullopt}));
  ASSERT_TRUE(company);
  const core::CompanyId id = company->value.id;
  const std::string before = everything();
  core::Call call = admin();
  call.once = core::OnceKey{"key", "fingerprint"};

  int walked = 0;
  while (true) {
    failing_->fail_at(walked + 1);
    const auto made = run(engine_->environments.create(call, id, ssh("e")));
    if (made) break;
    EXPECT_EQ(made.error().code, Errc::store_failed);
    EXPECT_EQ(everything(), before) << "after statement " << walked + 1;
    ++walked;
    ASSERT_LT(walked, 100);
  }
  EXPECT_GT(walked, 8);
  EXPECT_EQ(failing_->statements(), walked);
}

TEST_P(Failing, AnUpdateThatBreaksAtAnyStatementChangesNothing) {
  const auto company = run(engine_->companies.create(admin(), {"Acme", std::nullopt}));
  const auto made = run(engine_->environments.create(admin(), company->value.id, ssh("e")));
  ASSERT_TRUE(made);
  const std::string before = everything();
  UpdateEnvironment change;
  change.name = {true, "renamed"};
  change.config = {true, bj::object{{"privateKey", "another key"}}};

  for (int statement = 1; statement < 100; ++statement) {
    failing_->fail_at(statement);
    const auto changed = run(engine_->environments.update(admin(), made->value.id, change));
    if (changed) {
      EXPECT_GT(statement, 8);
      EXPECT_NE(changed->value.config, made->value.config);
      return;
    }
    failing_->fail_at(0);
    EXPECT_EQ(everything(), before) << "after statement " << statement;
    const auto now = run(engine_->environments.get(admin(), made->value.id));
    EXPECT_EQ(encode_text(now->value), encode_text(made->value)) << "after statement " << statement;
  }
  FAIL() << "the update never succeeded";
}

TEST_P(Failing, AServerWithAnotherMasterKeyRefusesToSeal) {
  ASSERT_TRUE(run(adopt_vault_key(engine_->services)));
  const auto company = run(engine_->companies.create(admin(), {"Acme", std::nullopt}));
  store::TemporaryFolder elsewhere;
  auto other = vault::Vault::open({.key = std::nullopt,
                                   .previous_key = std::nullopt,
                                   .file = elsewhere.path() + "/master.key",
                                   .may_create = true},
                                  random_);
  ASSERT_TRUE(other);
  Services services{*store_, *other, clock_, random_, *feed_};
  Secrets stranger{services};
  const auto made = run(stranger.create(admin(), company->value.id, secret_named("s")));
  EXPECT_EQ(made.error().code, Errc::master_key_missing);
  EXPECT_EQ(run(adopt_vault_key(services)).error().code, Errc::master_key_missing);
}

class Cleaning : public EngineContract {
 protected:
  core::Node fenced_node() {
    core::Node gone = node();
    gone.fenced_at = now();
    EXPECT_WORKS(write([&](store::Session& s) { return store::register_node(s, gone); }));
    return gone;
  }
  std::int64_t nodes() { return number("select count(*) from nodes"); }

  // Waits until it has done its work, and ends the janitor.
  static Task<> wait_until(Cleaning& test, std::function<bool()> is_done, TaskGroup& janitor) {
    asio::steady_timer timer{test.loop_};
    for (int look = 0; look < 500 && !is_done(); ++look) {
      timer.expires_after(std::chrono::milliseconds{20});
      co_await timer.async_wait(asio::use_awaitable);
    }
    co_return co_await janitor.stop();
  }
  void clean(std::function<bool()> is_done) {
    TaskGroup janitor{loop_.get_executor()};
    TaskGroup watching{loop_.get_executor()};
    janitor.start("janitor", keep_clean(engine_->services, *logs_, engine_->guards.quotas,
                                        loop_.get_executor()));
    watching.start("watch", wait_until(*this, std::move(is_done), janitor));
    loop_.run();
  }
};
BERTH_ON_BOTH_ENGINES(Cleaning);

TEST_P(Cleaning, AServerThatWasFencedAWeekAgoIsForgotten) {
  fenced_node();
  clock_.advance(std::chrono::hours{24 * 8});
  const core::Node late = fenced_node();
  clean([&] { return nodes() == 1; });
  EXPECT_EQ(nodes(), 1);
  EXPECT_EQ(number("select count(*) from nodes where id = '" + late.id.str() + "'"), 1);
}

TEST_P(Cleaning, TheLogOfARunThatIsGoneIsRemovedAndNoOther) {
  const core::RunId gone = core::RunId::make(random_, now());
  const core::RunId kept = given_run(given_company().id).id;
  for (const core::RunId& id : {gone, kept}) {
    auto log = logs_->writer(id);
    ASSERT_TRUE(log);
    EXPECT_WORKS(log->append(core::OutputStream::stdout_, now(), "said"));
  }
  clean([&] { return !logs_->has(gone); });
  EXPECT_FALSE(logs_->has(gone));
  EXPECT_TRUE(logs_->has(kept));
}

}  // namespace
}  // namespace berth::engine
