#include "contract/work_fixture.hpp"
#include "store/nodes.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/setup_sessions.hpp"
#include "store/places/templates.hpp"

#include <gmock/gmock.h>

namespace berth::engine {
namespace {

using core::LeaseState;
using core::RunState;
using core::SetupState;
using core::TemplateRole;
using core::TemplateState;

class TemplateRows : public WorkContract {
 protected:
  void SetUp() override {
    WorkContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    boxes_ = &server().use_boxes();
    place_.emplace(put_boxes({{"image", "debian"}}));
  }

  // A lease in use.
  core::LeaseRecord worked_with() {
    const core::Run run = put_run(*place_, RunState::running);
    return acquire(*place_, run).value;
  }
  Result<core::Template> capture(const core::LeaseId& lease, std::string name) {
    return await(server()->templates.capture(admin(), lease, {std::move(name)}));
  }
  core::Template captured(const core::LeaseId& lease, std::string name) {
    auto made = capture(lease, std::move(name));
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }
  // An administrator that repeats a request.
  core::Call with_key(std::string key) {
    core::Call call = admin();
    call.once = core::OnceKey{std::move(key), "fingerprint"};
    return call;
  }
  Task<> fork_into(std::optional<Result<LeaseView>>& answer, core::LeaseId id) {
    answer = co_await server()->snapshots.fork(with_key("k"), std::move(id), {});
    co_return Result<>{};
  }
  Task<> destroy(core::LeaseId id) {
    BERTH_CO_DO(co_await server()->leases.destroy(admin(), std::move(id)));
    co_return Result<>{};
  }
  // The operator of another company.
  core::Call stranger() {
    const auto other = await(server()->companies.create(admin(), {"Other", std::nullopt}));
    core::Call call = admin();
    call.who = {.kind = core::CallerKind::operator_key,
                .role = core::Role::admin,
                .company_id = other->value.id};
    return call;
  }
  Result<SetupView> begin_setup(StartSetup wanted = {}) {
    return await(server()->setup_sessions.start(admin(), place_->id, std::move(wanted)));
  }
  core::Template prepared() {
    const auto setup = begin_setup();
    EXPECT_TRUE(setup) << setup.error().message;
    const auto done = await(server()->setup_sessions.finish(admin(), setup->session.id, {}));
    EXPECT_TRUE(done) << done.error().message;
    hand_.turn(1s);
    return done->template_;
  }
  void set_config(bj::object config) {
    config["provider"] = "boxes";
    place_->config = std::move(config);
    EXPECT_WORKS(write([&](store::Session& s) -> Result<> {
      BERTH_TRY(auto row, store::find_environment(s, core::Reach::everything(), place_->id));
      row.value.config = place_->config;
      return store::update_environment(s, row);
    }));
  }
  // Whether the next sandbox of the environment starts from its template.
  bool starts_from_template() {
    worked_with();
    return boxes_->configs.back().contains("startFrom");
  }
  core::SetupSession session(const core::SetupSessionId& id) {
    return read([&](store::Session& s) {
             return store::find_setup_session(s, core::Reach::everything(), id);
           })
        ->value;
  }
  void TearDown() override {
    if (place_) {
      const auto all = read(
          [&](store::Session& s) { return store::list_leases(s, place_->id, std::nullopt, {}); });
      for (const auto& one : all->rows) end(one.value.id);
    }
    WorkContract::TearDown();
  }
  void end(const core::LeaseId& id) {
    const auto row = read([&](store::Session& s) {
      return store::find_lease_record(s, core::Reach::everything(), id);
    });
    if (core::is_final(row->value.status)) return;
    EXPECT_WORKS(await(server()->lease_lifecycle.settle(*row)));
  }

  Boxes* boxes_ = nullptr;
  std::optional<core::Environment> place_;
};
BERTH_ON_BOTH_ENGINES(TemplateRows);

TEST_P(TemplateRows, ALeaseIsCapturedUnderANameThatIsTakenOnce) {
  const core::LeaseRecord lease = worked_with();
  const core::Template made = captured(lease.id, "with-node");
  EXPECT_EQ(made.status, TemplateState::ready);
  EXPECT_EQ(made.company_id, *company_);
  EXPECT_EQ(made.environment_id, place_->id);
  EXPECT_EQ(made.source_lease_id, lease.id);
  EXPECT_TRUE(boxes_->templates.contains(made.template_ref.value_or("")));
  const auto again = capture(lease.id, "with-node");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::conflict);
  EXPECT_EQ(boxes_->templates.size(), 1U);
}

TEST_P(TemplateRows, AConfigThatNamesWhatIsNotThereIsRefusedByItsFieldWhenItIsSaved) {
  server()->catalog.linux_works();
  boxes_->missing_images = {"gone"};
  const auto pointer_of = [](const auto& saved) {
    EXPECT_FALSE(saved);
    if (saved) return std::string{"it was saved"};
    EXPECT_EQ(saved.error().code, Errc::unprocessable) << saved.error().message;
    return saved.error().issues.empty() ? "" : saved.error().issues.front().path;
  };
  const auto create = [&](bj::object config) {
    config["provider"] = "linux";
    CreateEnvironment wanted{};
    wanted.name = "new";
    wanted.driver = core::DriverKind::sandbox;
    wanted.config = std::move(config);
    return await(server()->environments.create(admin(), *company_, std::move(wanted)));
  };
  EXPECT_EQ(pointer_of(create({{"image", "gone"}})), "/config/image");
  EXPECT_EQ(pointer_of(create({{"template", "gone"}})), "/config/template");
  // A template of another provider does not apply to this one.
  captured(worked_with().id, "of-boxes");
  EXPECT_EQ(pointer_of(create({{"template", "of-boxes"}})), "/config/template");

  const auto made = create({{"image", "host"}});
  ASSERT_TRUE(made) << made.error().message;
  const auto patch = [&](bj::object config) {
    UpdateEnvironment change;
    change.config = {true, std::move(config)};
    return await(server()->environments.update(admin(), made->value.id, change));
  };
  EXPECT_EQ(pointer_of(patch({{"image", "gone"}})), "/config/image");
  EXPECT_EQ(pointer_of(patch({{"template", "gone"}})), "/config/template");
  EXPECT_WORKS(patch({{"memoryMb", 64}}));
}

TEST_P(TemplateRows, ACaptureThatFailsLeavesNothing) {
  const core::LeaseRecord lease = worked_with();
  boxes_->refuses_to_capture = true;
  const auto made = capture(lease.id, "never");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::store_full);
  const auto all = await(server()->templates.list(admin(), *company_, {}, {}));
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->rows.empty());
  EXPECT_TRUE(boxes_->templates.empty());
}

TEST_P(TemplateRows, OneThatItsProviderNeverToldTheNameOfWaitsForAnOperator) {
  boxes_->finds_by_answer = true;
  const core::LeaseRecord lease = worked_with();
  const auto all = [&] {
    return await(server()->templates.list(admin(), *company_, {}, {}))->rows;
  };
  for (const bool is_there : {true, false}) {
    boxes_->captures_to_lose = 1;
    EXPECT_FAILS(capture(lease.id, "lost"), Errc::timed_out);
    ASSERT_EQ(all().size(), 1U);
    const core::Template row = all().front();
    EXPECT_EQ(row.status, TemplateState::deleting);
    EXPECT_EQ(row.next_attempt_at, std::nullopt);
    for (const std::string& part :
         {std::string{"capture_unanswered: "}, lease.id.str(),
          "berth template adopt " + row.id.str(), "berth template force-resolve " + row.id.str()}) {
      EXPECT_THAT(row.failure_reason.value_or(""), testing::HasSubstr(part));
    }
    hand_.turn(24h);
    sweep();
    EXPECT_FAILS(await(server()->templates.remove(admin(), row.id)), Errc::image_in_use);
    EXPECT_EQ(all().front().failure_reason, row.failure_reason);
    const core::Template good = captured(lease.id, "lost");
    EXPECT_FAILS(await(server()->templates.adopt(admin(), row.id, {*good.template_ref})),
                 Errc::conflict);
    EXPECT_FAILS(await(server()->templates.adopt(admin(), good.id, {"tpl"})), Errc::conflict);
    EXPECT_WORKS(await(server()->templates.remove(admin(), good.id)));
    const auto done =
        is_there ? await(server()->templates.adopt(admin(), row.id, {"tpl-" + row.id.str()}))
                 : await(server()->templates.force_resolve(admin(), row.id, {"not there"}));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->status, TemplateState::deleted);
    EXPECT_EQ(boxes_->templates.contains("tpl-" + row.id.str()), !is_there);
  }
  boxes_->refuses_in_words = true;
  EXPECT_FAILS(capture(lease.id, "refused"), Errc::plugin_call_failed);
  EXPECT_TRUE(all().empty()) << "a refusal is an answer";
}

TEST_P(TemplateRows, AnotherCompanyFindsNeitherTemplateNorSession) {
  const core::LeaseRecord lease = worked_with();
  const core::Template made = captured(lease.id, "ours");
  const auto setup = begin_setup();
  ASSERT_TRUE(setup) << setup.error().message;
  const core::Call who = stranger();
  EXPECT_EQ(await(server()->templates.get(who, made.id)).error().code, Errc::template_not_found);
  EXPECT_EQ(await(server()->templates.remove(who, made.id)).error().code, Errc::template_not_found);
  EXPECT_EQ(await(server()->snapshots.changes(who, lease.id)).error().code, Errc::lease_not_found);
  EXPECT_EQ(await(server()->snapshots.fork(who, lease.id, {})).error().code, Errc::lease_not_found);
  EXPECT_EQ(await(server()->setup_sessions.get(who, setup->session.id)).error().code,
            Errc::setup_session_not_found);
  EXPECT_EQ(await(server()->setup_sessions.cancel(who, setup->session.id, {})).error().code,
            Errc::setup_session_not_found);
  EXPECT_EQ(await(server()->templates.list(who, *company_, {}, {})).error().code,
            Errc::company_not_found);
  EXPECT_WORKS(await(server()->setup_sessions.cancel(admin(), setup->session.id, {})));
}

TEST_P(TemplateRows, ATemplateIsDeletedWhenNothingStandsOnIt) {
  const core::LeaseRecord lease = worked_with();
  const core::Template made = captured(lease.id, "base");
  const auto fork = await(server()->snapshots.fork(admin(), lease.id, {}));
  ASSERT_TRUE(fork) << fork.error().message;
  const core::Template above = captured(fork->id, "above");
  ASSERT_TRUE(above.source_template_id);
  const auto below = await(server()->templates.get(admin(), *above.source_template_id));
  ASSERT_TRUE(below);
  EXPECT_TRUE(below->expendable);
  EXPECT_EQ(await(server()->templates.remove(admin(), below->id)).error().code, Errc::image_in_use);
  const auto gone = await(server()->templates.remove(admin(), made.id));
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_EQ(await(server()->templates.get(admin(), made.id)).error().code,
            Errc::template_not_found);
  EXPECT_FALSE(boxes_->templates.contains(*made.template_ref));
  EXPECT_WORKS(await(server()->leases.release(admin(), fork->id)));
}

TEST_P(TemplateRows, ADeletionThatFailsIsTriedAgain) {
  const core::LeaseRecord lease = worked_with();
  const core::Template made = captured(lease.id, "stuck");
  boxes_->refuses_to_delete = true;
  EXPECT_FALSE(await(server()->templates.remove(admin(), made.id)));
  EXPECT_EQ(await(server()->templates.get(admin(), made.id))->status, TemplateState::deleting);
  boxes_->refuses_to_delete = false;
  hand_.turn(1h);
  sweep();
  EXPECT_EQ(await(server()->templates.get(admin(), made.id)).error().code,
            Errc::template_not_found);
  EXPECT_TRUE(boxes_->templates.empty());
}

TEST_P(TemplateRows, AForkBeginsFromWhatItWasMadeOfAndItsTemplateGoesWithIt) {
  const core::LeaseRecord lease = worked_with();
  const auto fork = await(server()->snapshots.fork(admin(), lease.id, {}));
  ASSERT_TRUE(fork) << fork.error().message;
  EXPECT_EQ(fork->status, LeaseState::active);
  EXPECT_NE(fork->id, lease.id);
  ASSERT_EQ(boxes_->templates.size(), 1U);
  EXPECT_EQ(boxes_->configs.back().at("startFrom").as_string(), *boxes_->templates.begin());
  EXPECT_FALSE(boxes_->configs.back().contains("image"));
  hand_.turn(20min);
  sweep();
  EXPECT_EQ(boxes_->templates.size(), 1U) << "it is in use";
  EXPECT_WORKS(await(server()->leases.release(admin(), fork->id)));
  sweep();
  EXPECT_TRUE(boxes_->templates.empty()) << "nothing stands on it any more";
}

TEST_P(TemplateRows, ACaptureOrForkThatCameToNothingIsDoneAnewUnderItsKey) {
  const core::LeaseRecord lease = worked_with();
  const auto capture_it = [&] {
    return await(server()->templates.capture(with_key("capture"), lease.id, {"wanted"}));
  };
  const auto fork_it = [&] {
    return await(server()->snapshots.fork(with_key("fork"), lease.id, {}));
  };
  boxes_->refuses_to_capture = true;
  EXPECT_FAILS(capture_it(), Errc::store_full);
  EXPECT_FAILS(fork_it(), Errc::store_full);
  boxes_->refuses_to_capture = false;

  const auto made = capture_it();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->status, TemplateState::ready);
  EXPECT_EQ(capture_it()->id, made->id);
  const auto fork = fork_it();
  ASSERT_TRUE(fork) << fork.error().message;
  EXPECT_EQ(fork->status, LeaseState::active);
  EXPECT_EQ(fork_it()->id, fork->id);
  EXPECT_EQ(boxes_->templates.size(), 2U) << "each was done once";

  // A deleted template is not created again.
  EXPECT_WORKS(await(server()->templates.remove(admin(), made->id)));
  EXPECT_FAILS(capture_it(), Errc::template_not_found);
  EXPECT_WORKS(await(server()->leases.release(admin(), fork->id)));
  EXPECT_EQ(fork_it()->id, fork->id);
}

TEST_P(TemplateRows, ARepeatedForkThatIsStillBeingMadeSaysSo) {
  const core::LeaseRecord lease = worked_with();
  std::optional<Result<LeaseView>> twin;
  boxes_->meanwhile = [&] { return fork_into(twin, lease.id); };
  const auto fork = await(server()->snapshots.fork(with_key("k"), lease.id, {}));
  ASSERT_TRUE(fork) << fork.error().message;
  ASSERT_TRUE(twin);
  EXPECT_FAILS(*twin, Errc::conflict);
  EXPECT_WORKS(await(server()->leases.release(admin(), fork->id)));
}

TEST_P(TemplateRows, AForkEndsWithItsTime) {
  const core::LeaseRecord lease = worked_with();
  const auto fork = await(server()->snapshots.fork(admin(), lease.id, {.ttl_seconds = 60}));
  ASSERT_TRUE(fork) << fork.error().message;
  hand_.turn(61s);
  sweep();
  EXPECT_TRUE(core::is_final(this->lease(fork->id).status));
}

TEST_P(TemplateRows, ARollbackGivesAFreshSandboxAndIsRefusedWhileARunWorks) {
  const core::LeaseRecord lease = worked_with();
  EXPECT_EQ(await(server()->snapshots.roll_back(admin(), lease.id, {})).error().code,
            Errc::conflict);
  const auto fork = await(server()->snapshots.fork(admin(), lease.id, {}));
  ASSERT_TRUE(fork) << fork.error().message;
  const core::Template made = captured(fork->id, "later");
  const auto back = await(server()->snapshots.roll_back(admin(), fork->id, {"later"}));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->status, LeaseState::active);
  EXPECT_EQ(boxes_->configs.back().at("startFrom").as_string(), *made.template_ref);
  EXPECT_NE(back->provider_lease_id, fork->provider_lease_id);
  EXPECT_FALSE(boxes_->there.contains(*fork->provider_lease_id)) << "the old one is gone";
  EXPECT_WORKS(await(server()->leases.release(admin(), fork->id)));
}

TEST_P(TemplateRows, ARollbackWhoseLeaseEndsMeanwhileLeavesNoSandbox) {
  const core::LeaseRecord lease = worked_with();
  for (const bool is_answered : {true, false}) {
    const auto fork = await(server()->snapshots.fork(admin(), lease.id, {}));
    ASSERT_TRUE(fork) << fork.error().message;
    const std::set<std::string> others{*lease.provider_lease_id};
    boxes_->meanwhile = [&] { return destroy(fork->id); };
    boxes_->answers_to_lose = is_answered ? 0 : 1;
    EXPECT_FAILS(await(server()->snapshots.roll_back(admin(), fork->id, {})), Errc::conflict);
    const core::LeaseRecord ended = this->lease(fork->id);
    EXPECT_EQ(ended.status, LeaseState::expired);
    EXPECT_EQ(ended.cleanup_status, core::CleanupStatus::success);
    EXPECT_EQ(ended.provider_lease_id, fork->provider_lease_id);
    if (is_answered) EXPECT_EQ(boxes_->there, others) << "whoever lost the race cleans up";
    EXPECT_TRUE(boxes_->verbs.back().starts_with("destroy "));
  }
}

TEST_P(TemplateRows, AFrozenLeaseStaysFrozenWhenItIsCaptured) {
  const core::LeaseRecord lease = worked_with();
  const auto frozen = await(server()->snapshots.freeze(admin(), lease.id));
  ASSERT_TRUE(frozen) << frozen.error().message;
  EXPECT_EQ(frozen->metadata->at("frozen"), bj::value(true));
  EXPECT_THAT(frozen->next_step, testing::HasSubstr("berth sandbox thaw " + lease.id.str()));
  EXPECT_TRUE(boxes_->frozen.contains(*lease.provider_lease_id));
  captured(lease.id, "still");
  EXPECT_TRUE(boxes_->frozen.contains(*lease.provider_lease_id));
  EXPECT_WORKS(await(server()->snapshots.thaw(admin(), lease.id)));
  EXPECT_TRUE(boxes_->frozen.empty());
}

TEST_P(TemplateRows, AFinishedSetupMakesTheTemplateOfAllLaterSandboxes) {
  const auto setup = begin_setup();
  ASSERT_TRUE(setup) << setup.error().message;
  EXPECT_EQ(setup->session.status, SetupState::waiting_for_user);
  ASSERT_TRUE(setup->connection_payload);
  EXPECT_EQ(begin_setup().error().code, Errc::conflict) << "one at a time";
  const auto done = await(server()->setup_sessions.finish(admin(), setup->session.id, {}));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->session.status, SetupState::promoted);
  EXPECT_EQ(done->template_.role, TemplateRole::active);
  EXPECT_TRUE(core::is_final(lease(setup->session.environment_lease_id).status));
  const auto image = await(server()->templates.custom_image(admin(), place_->id));
  ASSERT_TRUE(image && image->active_template);
  EXPECT_EQ(image->active_template->id, done->template_.id);
  EXPECT_EQ(image->active_template_matches_config, true);
  worked_with();
  EXPECT_EQ(boxes_->configs.back().at("startFrom").as_string(), *done->template_.template_ref);
  EXPECT_EQ(await(server()->setup_sessions.finish(admin(), setup->session.id, {})).error().code,
            Errc::conflict);
  EXPECT_EQ(await(server()->templates.remove(admin(), done->template_.id)).error().code,
            Errc::image_in_use);
}

TEST_P(TemplateRows, AnotherBootSourceMakesTheTemplateStandBackUntilItIsLinkedAgain) {
  const auto drift = [&] {
    return await(server()->templates.custom_image(admin(), place_->id))->active_template_drift;
  };
  const auto relink = [&](bool confirmed) {
    return await(server()->templates.relink(admin(), place_->id, {confirmed}));
  };
  EXPECT_EQ(relink(true).error().code, Errc::conflict) << "there is none";
  prepared();
  EXPECT_FALSE(drift());

  set_config({{"image", "debian"}, {"timeoutMs", 5}});
  ASSERT_TRUE(drift());
  EXPECT_EQ(name_of(drift()->classification), name_of(core::DriftKind::knob_only));
  EXPECT_TRUE(starts_from_template());

  set_config({{"image", "another"}, {"timeoutMs", 5}});
  EXPECT_EQ(name_of(drift()->classification), name_of(core::DriftKind::boot_source_drift));
  EXPECT_EQ(
      await(server()->templates.custom_image(admin(), place_->id))->active_template_matches_config,
      false);
  EXPECT_FALSE(starts_from_template());
  EXPECT_EQ(boxes_->configs.back().at("image"), bj::value("another"));

  const auto refused = relink(false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_EQ(refused.error().facts.at("driftedPaths"),
            (std::vector<std::string>{"/config/image", "/config/timeoutMs"}));
  EXPECT_FALSE(starts_from_template());
  const auto linked = relink(true);
  ASSERT_TRUE(linked) << linked.error().message;
  EXPECT_EQ(name_of(linked->classification), name_of(core::DriftKind::boot_source_drift));
  EXPECT_FALSE(drift());
  EXPECT_TRUE(starts_from_template());
}

TEST_P(TemplateRows, ATemplateIsNotLinkedToAnotherProvider) {
  prepared();
  EXPECT_WORKS(write([&](store::Session& s) -> Result<> {
    BERTH_TRY(auto row, store::find_environment(s, core::Reach::everything(), place_->id));
    row.value.config["provider"] = "fake";
    return store::update_environment(s, row);
  }));
  const auto linked = await(server()->templates.relink(admin(), place_->id, {true}));
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().code, Errc::conflict);
}

TEST_P(TemplateRows, ASecondSetupSupersedesAndARollbackBringsTheFirstBack) {
  const core::Template first = prepared();
  const core::Template second = prepared();
  EXPECT_EQ(second.source_template_id, first.id) << "it began where the first had ended";
  EXPECT_EQ(await(server()->templates.get(admin(), first.id))->role, TemplateRole::superseded);
  const auto back = await(server()->templates.roll_back(admin(), place_->id));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->active_template.id, first.id);
  const auto none = await(server()->templates.revoke(admin(), place_->id));
  ASSERT_TRUE(none) << none.error().message;
  worked_with();
  EXPECT_FALSE(boxes_->configs.back().contains("startFrom"));
}

TEST_P(TemplateRows, ACancelledOrExpiredSetupChangesNothingAndLeavesNothing) {
  const auto first = begin_setup();
  ASSERT_TRUE(first) << first.error().message;
  const auto gone = await(server()->setup_sessions.cancel(admin(), first->session.id, {"no time"}));
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_EQ(gone->status, SetupState::cancelled);
  const auto second = begin_setup({.template_id = std::nullopt, .ttl_seconds = 60});
  ASSERT_TRUE(second) << second.error().message;
  hand_.turn(61s);
  sweep();
  EXPECT_EQ(session(second->session.id).status, SetupState::timed_out);
  EXPECT_TRUE(core::is_final(lease(second->session.environment_lease_id).status));
  EXPECT_TRUE(boxes_->there.empty());
  EXPECT_TRUE(boxes_->templates.empty());
}

TEST_P(TemplateRows, ASetupWhoseCaptureFailsCanBeFinishedLater) {
  const auto setup = begin_setup();
  ASSERT_TRUE(setup) << setup.error().message;
  boxes_->refuses_to_capture = true;
  EXPECT_EQ(await(server()->setup_sessions.finish(admin(), setup->session.id, {})).error().code,
            Errc::store_full);
  EXPECT_EQ(session(setup->session.id).status, SetupState::waiting_for_user);
  boxes_->refuses_to_capture = false;
  const auto done = await(server()->setup_sessions.finish(admin(), setup->session.id, {}));
  ASSERT_TRUE(done) << done.error().message;
}

TEST_P(TemplateRows, ASetupWhoseSandboxCannotBeMadeFailsAndFreesTheEnvironment) {
  boxes_->refuses_to_acquire = true;
  EXPECT_FALSE(begin_setup());
  boxes_->refuses_to_acquire = false;
  const auto setup = begin_setup();
  ASSERT_TRUE(setup) << setup.error().message;
  EXPECT_WORKS(await(server()->setup_sessions.cancel(admin(), setup->session.id, {})));
}

TEST_P(TemplateRows, OnlyASandboxIsSetUp) {
  const auto refused = await(server()->setup_sessions.start(admin(), local(), {}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unprocessable);
}

}  // namespace
}  // namespace berth::engine
