#include "contract/work_fixture.hpp"
#include "store/places/environments.hpp"

// One sandbox serves one lease at a time, however its provider names it.
namespace berth::engine {
namespace {

using core::RunState;
using core::SandboxState;

class Exclusive : public WorkContract {
 protected:
  void SetUp() override {
    WorkContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    boxes_ = &server().use_boxes();
    boxes_->names_by_environment = true;
    boxes_->finds_by_answer = true;
    environment_ = put_boxes({{"reuseLease", true}});
    server().open();
  }
  core::RunId start_in_box(std::vector<std::string> argv) {
    StartRun wanted = program(std::move(argv));
    wanted.environment_id = environment_->id;
    return start(std::move(wanted));
  }
  static std::string box_of(const RunView& view) {
    return *view.environment_lease->provider_lease_id;
  }
  std::string shared() const { return "box-of-" + environment_->id.str(); }

  Boxes* boxes_ = nullptr;
  std::optional<core::Environment> environment_;
};
BERTH_ON_BOTH_ENGINES(Exclusive);

TEST_P(Exclusive, ASecondRunHasASandboxOfItsOwnThatEndsWithIt) {
  const core::RunId first = start_in_box({"sleep", "60"});
  EXPECT_EQ(box_of(reaches(first, RunState::running)), shared());
  const core::RunId second = start_in_box({"true"});
  const RunView view = ended(second);
  EXPECT_EQ(view.status, RunState::succeeded);
  EXPECT_NE(box_of(view), shared());
  EXPECT_EQ(view.environment_lease->lease_policy, core::LeasePolicy::ephemeral);
  EXPECT_EQ(boxes_->there, std::set<std::string>{shared()});
  EXPECT_WORKS(await(server()->runs.cancel(admin(), first)));
  ended(first);
  EXPECT_EQ(boxes_->there, std::set<std::string>{});
}

TEST_P(Exclusive, ALeaseThatIsAnsweredWithASandboxOfAnotherAsksForItsOwn) {
  // The second acquire starts before the response to the first is recorded, so that only the store
  // can detect that both got the same sandbox.
  const core::Run one = put_run(*environment_, RunState::starting);
  const core::Run other = put_run(*environment_, RunState::starting);
  std::optional<LeaseLifecycle::Row> inner;
  boxes_->meanwhile = [&]() -> Task<> {
    auto& leases = server()->lease_lifecycle;
    BERTH_CO_TRY(auto row, co_await server()->services.store.write([&](store::Session& s) {
      return leases.intend(s, core::LeaseId::make(any_, hand_.now()), *environment_, &other, {});
    }));
    BERTH_CO_TRY(LeaseLifecycle::Held held, co_await leases.acquire(std::move(row), {}, {}));
    inner = std::move(held.lease);
    co_return Result<>{};
  };
  const LeaseLifecycle::Row outer = acquire(*environment_, one);
  ASSERT_TRUE(inner);
  EXPECT_EQ(inner->value.provider_lease_id, shared());
  EXPECT_NE(outer.value.provider_lease_id, shared());
  EXPECT_EQ(boxes_->configs.back().at("reuseLease"), false);
  release(outer);
  EXPECT_EQ(boxes_->there, std::set<std::string>{shared()}) << "the other lease still holds it";
  EXPECT_EQ(sandbox(*inner->value.sandbox_id).status, SandboxState::leased);
  release(*inner);
}

TEST_P(Exclusive, AProviderThatGivesAwayASandboxOfAnotherIsRefusedAndNothingIsDestroyed) {
  boxes_->has_one_box = true;
  const core::RunId first = start_in_box({"sleep", "60"});
  const std::string only = box_of(reaches(first, RunState::running));
  const RunView second = ended(start_in_box({"true"}));
  EXPECT_EQ(second.status, RunState::failed);
  EXPECT_EQ(second.error_code, "lease_acquire_failed");
  EXPECT_TRUE(second.error->contains("which another lease holds")) << *second.error;
  EXPECT_EQ(boxes_->there, std::set<std::string>{only});
  EXPECT_EQ(look(first).status, RunState::running);
  EXPECT_WORKS(await(server()->runs.cancel(admin(), first)));
  ended(first);
}

TEST_P(Exclusive, ASandboxThatNobodyWillAskForAgainIsDestroyedAtOnce) {
  const core::RunId first = start_in_box({"true"});
  ended(first);
  bj::object config = environment_->config;
  config["image"] = "another";
  EXPECT_WORKS(write([&](store::Session& s) -> Result<> {
    BERTH_TRY(auto row, store::find_environment(s, core::Reach::everything(), environment_->id));
    row.value.config = config;
    return store::update_environment(s, row);
  }));
  ended(start_in_box({"true"}));
  sweep();
  EXPECT_FALSE(boxes_->there.contains(shared())) << "nobody would ever ask for it again";
}

}  // namespace
}  // namespace berth::engine
