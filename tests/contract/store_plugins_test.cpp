#include "contract/store_fixture.hpp"
#include "store/companies.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/plugins.hpp"

#include <gmock/gmock.h>

// Plugins, their settings per company, and their stored data.
namespace berth::store {
namespace {

using core::PluginEvent;
using core::PluginScope;
using core::PluginState;
using core::Reach;
using testing::ElementsAre;
using testing::IsEmpty;

class Plugins : public StoreContract {
 protected:
  core::Plugin plugin(const std::string& key) {
    return {.id = fresh<core::PluginId>(),
            .plugin_key = key,
            .package_name = "/srv/" + key,
            .package_version = "1.2.3",
            .categories = {"workspace"},
            .manifest = {{"id", key}},
            .package_path = "/srv/" + key,
            .installed_at = now(),
            .updated_at = now()};
  }
  Stored<core::Plugin> given_plugin(const std::string& key) {
    return *write([&](Session& s) { return insert_plugin(s, plugin(key)); });
  }
  Result<Stored<core::Plugin>> move(const Stored<core::Plugin>& row, PluginEvent event,
                                    std::optional<std::string> error = {}) {
    return write([&](Session& s) { return move_plugin(s, row, event, error, now()); });
  }
  std::vector<std::string> listed(std::optional<PluginState> status = {}) {
    std::vector<std::string> keys;
    const auto rows = read([&](Session& s) { return list_plugins(s, status); });
    for (const auto& row : *rows) keys.push_back(row.value.plugin_key);
    return keys;
  }
  core::PluginLogLine line(const core::PluginId& plugin, const std::string& message) {
    return {
        .id = fresh<core::EventId>(), .plugin_id = plugin, .message = message, .created_at = now()};
  }
  core::PluginEntity entity(const core::PluginId& plugin, std::optional<std::string> external) {
    return {.id = fresh<core::EventId>(),
            .plugin_id = plugin,
            .entity_type = "box",
            .external_id = std::move(external),
            .document = {{"a", 1}},
            .created_at = now(),
            .updated_at = now()};
  }
};
BERTH_ON_BOTH_ENGINES(Plugins);

TEST_P(Plugins, ComeBackAsTheyWereInTheOrderOfInstallation) {
  const auto first = given_plugin("zeta");
  const auto second = given_plugin("alpha");
  EXPECT_EQ(first.value.install_order, 1);
  EXPECT_EQ(second.value.install_order, 2);
  EXPECT_THAT(listed(), ElementsAre("zeta", "alpha"));
  const auto found = read([&](Session& s) { return find_plugin(s, first.value.id); });
  ASSERT_TRUE(found);
  EXPECT_EQ(encode_text(found->value), encode_text(first.value));
  EXPECT_EQ((*read([&](Session& s) { return find_plugin_by_key(s, "alpha"); }))->value.id,
            second.value.id);
  EXPECT_FAILS(read([&](Session& s) { return find_plugin(s, fresh<core::PluginId>()); }),
               Errc::plugin_not_found);
}

TEST_P(Plugins, AKeyIsTakenOnce) {
  given_plugin("alpha");
  EXPECT_FAILS(write([&](Session& s) { return insert_plugin(s, plugin("alpha")); }),
               Errc::plugin_exists);
}

TEST_P(Plugins, MoveByTheirTableAndSayWhy) {
  const auto made = given_plugin("alpha");
  const auto broken = move(made, PluginEvent::failed, "no Node");
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->value.last_error, "no Node");
  EXPECT_FAILS(move(made, PluginEvent::activated), Errc::conflict);  // of an old version
  const auto ready = move(*broken, PluginEvent::activated);
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->value.last_error, std::nullopt);
  EXPECT_FAILS(move(*ready, PluginEvent::installed_again), Errc::conflict);
  const auto gone = move(*ready, PluginEvent::uninstalled);
  ASSERT_TRUE(gone);
  EXPECT_THAT(listed(), IsEmpty());
  EXPECT_THAT(listed(PluginState::uninstalled), ElementsAre("alpha"));
}

TEST_P(Plugins, AnUpgradeThatWaitsIsKeptWhole) {
  auto row = *move(given_plugin("alpha"), PluginEvent::activated);
  row.value.pending_upgrade = core::PendingUpgrade{.version = "2.0.0",
                                                   .manifest = {{"id", "alpha"}},
                                                   .added_capabilities = {"http.outbound"},
                                                   .package_path = "/srv/next"};
  const auto pending = move(row, PluginEvent::review_needed);
  ASSERT_TRUE(pending);
  const auto found = read([&](Session& s) { return find_plugin(s, row.value.id); });
  EXPECT_EQ(found->value.status, PluginState::upgrade_pending);
  EXPECT_EQ(found->value.pending_upgrade, row.value.pending_upgrade);
}

TEST_P(Plugins, ACompanyHasOneConfigOfEach) {
  const core::Company acme = given_company("Acme");
  const core::Company other = given_company("Other");
  const core::PluginId id = given_plugin("alpha").value.id;
  const auto save = [&](const core::CompanyId& company, int value) {
    const core::PluginConfigRow row{.id = fresh<core::EventId>(),
                                    .plugin_id = id,
                                    .company_id = company,
                                    .config_json = {{"value", value}},
                                    .created_at = now(),
                                    .updated_at = now()};
    return write([&](Session& s) { return save_plugin_config(s, row); });
  };
  const auto first = save(acme.id, 1);
  ASSERT_TRUE(first);
  const auto second = save(acme.id, 2);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->value.id, first->value.id);
  EXPECT_WORKS(save(other.id, 3));
  EXPECT_FAILS(save(fresh<core::CompanyId>(), 4), Errc::company_not_found);
  EXPECT_EQ(read([&](Session& s) { return list_plugin_configs(s, id); })->size(), 2U);
  EXPECT_WORKS(write([&](Session& s) { return delete_company(s, other.id); }));
  const auto left = read([&](Session& s) { return list_plugin_configs(s, id); });
  ASSERT_EQ(left->size(), 1U);
  EXPECT_EQ(left->front().config_json, (bj::object{{"value", 2}}));
}

TEST_P(Plugins, AStateIsFoundUnderItsWholeKeyOnly) {
  const core::Company acme = given_company("Acme");
  const core::PluginId id = given_plugin("alpha").value.id;
  const core::PluginId other = given_plugin("beta").value.id;
  const core::PluginStateKey key{PluginScope::company, acme.id.str(), "default", "cursor"};
  const auto set = [&](const core::PluginStateKey& where, bj::value value) {
    return write([&](Session& s) { return save_plugin_state(s, id, where, value, 2, now()); });
  };
  const auto get = [&](const core::PluginId& plugin, const core::PluginStateKey& where) {
    return *read([&](Session& s) { return find_plugin_state(s, plugin, where); });
  };
  EXPECT_EQ(get(id, key), std::nullopt);
  EXPECT_WORKS(set(key, bj::object{{"at", 1}}));
  EXPECT_WORKS(set(key, nullptr));
  EXPECT_WORKS(set(key, "text"));
  EXPECT_EQ(get(id, key), bj::value("text"));
  EXPECT_EQ(get(other, key), std::nullopt);
  EXPECT_EQ(get(id, {PluginScope::instance, "", "default", "cursor"}), std::nullopt);
  EXPECT_EQ(get(id, {PluginScope::company, acme.id.str(), "else", "cursor"}), std::nullopt);
  EXPECT_WORKS(set({PluginScope::instance, "", "default", "a"}, 1));
  EXPECT_FAILS(set({PluginScope::instance, "", "default", "b"}, 1), Errc::overloaded);
  EXPECT_WORKS(write([&](Session& s) { return delete_company(s, acme.id); }));
  EXPECT_EQ(get(id, key), std::nullopt);
  const core::PluginStateKey mine{PluginScope::instance, "", "default", "a"};
  EXPECT_WORKS(write([&](Session& s) { return delete_plugin_state(s, id, mine); }));
  EXPECT_EQ(number("select count(*) from plugin_state"), 0);
}

TEST_P(Plugins, AnEntityWithAnExternalIdIsReplaced) {
  const core::PluginId id = given_plugin("alpha").value.id;
  const auto save = [&](core::PluginEntity one) {
    return write([&](Session& s) { return save_plugin_entity(s, one, 3); });
  };
  const auto first = save(entity(id, "x-1"));
  ASSERT_TRUE(first);
  core::PluginEntity again = entity(id, "x-1");
  again.title = "renamed";
  const auto second = save(again);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->id, first->id);
  EXPECT_WORKS(save(entity(id, std::nullopt)));
  EXPECT_WORKS(save(entity(id, std::nullopt)));
  EXPECT_FAILS(save(entity(id, std::nullopt)), Errc::overloaded);
  const auto list = [&](const EntityFilter& filter, std::int64_t limit, std::int64_t offset) {
    return read([&](Session& s) { return list_plugin_entities(s, id, filter, limit, offset); })
        ->size();
  };
  EXPECT_EQ(list({}, 10, 0), 3U);
  EXPECT_EQ(list({}, 2, 2), 1U);
  EXPECT_EQ(list({.external_id = "x-1"}, 10, 0), 1U);
  EXPECT_EQ(list({.entity_type = "cat"}, 10, 0), 0U);
}

TEST_P(Plugins, AreReadInTheirLogByThoseWhomALineConcerns) {
  const core::Company acme = given_company("Acme");
  const core::Company other = given_company("Other");
  const core::PluginId id = given_plugin("alpha").value.id;
  core::PluginLogLine of_acme = line(id, "acme");
  of_acme.company_id = acme.id;
  of_acme.level = core::PluginLogLevel::warn;
  const core::PluginLogLine of_nobody = line(fresh<core::PluginId>(), "gone");
  core::PluginLogLine of_a_deleted_company = line(id, "of a company that was deleted meanwhile");
  of_a_deleted_company.company_id = fresh<core::CompanyId>();
  for (const auto& one : {line(id, "host"), of_acme, of_nobody, of_a_deleted_company}) {
    EXPECT_WORKS(write([&](Session& s) { return insert_plugin_log(s, one); }));
  }
  const auto count = [&](const Reach& reach, const PluginLogFilter& filter) {
    return read([&](Session& s) { return list_plugin_logs(s, id, reach, filter, 10); })->size();
  };
  EXPECT_EQ(count(Reach::everything(), {}), 2U);
  EXPECT_EQ(count(Reach::only(acme.id), {}), 1U);
  EXPECT_EQ(count(Reach::only(other.id), {}), 0U);
  EXPECT_EQ(count(Reach::everything(), {.level = core::PluginLogLevel::warn}), 1U);
  EXPECT_EQ(count(Reach::everything(), {.since = now() + 1}), 0U);
  EXPECT_EQ(number("select count(*) from plugin_logs"), 2);
}

TEST_P(Plugins, ALogKeepsTheNewestLinesForALimitedTime) {
  const core::PluginId id = given_plugin("alpha").value.id;
  for (int i = 0; i < 10; ++i) {
    clock_.advance(std::chrono::milliseconds{10});
    const auto one = line(id, std::to_string(i));
    EXPECT_WORKS(write([&](Session& s) { return insert_plugin_log(s, one); }));
  }
  const Time before = now() + -75;  // two are older
  const auto prune = [&](std::int64_t limit) {
    return *write([&](Session& s) { return prune_plugin_logs(s, before, 5, limit); });
  };
  EXPECT_EQ(prune(1), 1);
  EXPECT_EQ(prune(100), 4);
  EXPECT_EQ(prune(100), 0);
  const auto left =
      read([&](Session& s) { return list_plugin_logs(s, id, Reach::everything(), {}, 10); });
  ASSERT_EQ(left->size(), 5U);
  EXPECT_EQ(left->front().message, "9");
  EXPECT_EQ(left->back().message, "5");
}

TEST_P(Plugins, HoldTheSandboxesThatTheyMadeUntilThoseAreOver) {
  const core::Company acme = given_company("Acme");
  const core::Environment box = given_environment(acme.id, "box");
  const core::PluginId id = given_plugin("alpha").value.id;
  core::Sandbox held = sandbox(box, core::SandboxState::leased);
  held.plugin_id = id;
  core::Sandbox over = sandbox(box, core::SandboxState::destroyed);
  over.plugin_id = id;
  const core::Sandbox foreign = sandbox(box, core::SandboxState::leased);
  core::LeaseRecord waiting = lease(box, core::LeaseState::pending_cleanup);
  waiting.sandbox_id = held.id;
  waiting.attempts = 8;
  waiting.parked_at = now();
  for (const core::Sandbox& one : {held, over, foreign}) {
    EXPECT_WORKS(write([&](Session& s) { return insert_sandbox(s, one); }));
  }
  EXPECT_WORKS(write([&](Session& s) { return insert_lease(s, waiting); }));
  EXPECT_EQ(*read([&](Session& s) { return count_sandboxes_of(s, id, Reach::everything()); }), 1);

  EXPECT_WORKS(write([&](Session& s) { return retry_teardowns_of(s, id, now()); }));
  const auto row =
      read([&](Session& s) { return find_lease_record(s, Reach::everything(), waiting.id); });
  ASSERT_TRUE(row);
  EXPECT_EQ(row->value.parked_at, std::nullopt);
  EXPECT_EQ(row->value.attempts, 0);
  EXPECT_EQ(row->value.next_attempt_at, now());
}

TEST_P(Plugins, FoldersAreRememberedUntilTheyAreGone) {
  const core::PluginFolder folder{
      .id = "f1", .node_id = fresh<core::NodeId>(), .created_at = now(), .updated_at = now()};
  EXPECT_WORKS(write([&](Session& s) { return insert_plugin_folder(s, folder); }));
  EXPECT_WORKS(write(
      [&](Session& s) { return use_plugin_folder(s, "f1", core::PluginFolderUse::held, now()); }));
  const auto list = [&] { return *read([&](Session& s) { return list_plugin_folders(s); }); };
  ASSERT_EQ(list().size(), 1U);
  EXPECT_EQ(list().front().use, core::PluginFolderUse::held);
  EXPECT_WORKS(write([&](Session& s) { return delete_plugin_folder(s, "f1"); }));
  EXPECT_THAT(list(), IsEmpty());
}

TEST_P(Plugins, DeletionTakesWhatAPluginKeeps) {
  const core::Company acme = given_company("Acme");
  const core::PluginId id = given_plugin("alpha").value.id;
  const core::PluginStateKey key{PluginScope::instance, "", "default", "a"};
  const auto one = line(id, "x");
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_DO(save_plugin_state(s, id, key, 1, 10, now()));
    BERTH_DO(save_plugin_entity(s, entity(id, "x"), 10));
    BERTH_DO(insert_plugin_log(s, one));
    return delete_plugin(s, id);
  }));
  for (const std::string table : {"plugins", "plugin_state", "plugin_entities", "plugin_logs"}) {
    EXPECT_EQ(number("select count(*) from " + table), 0) << table;
  }
}

}  // namespace
}  // namespace berth::store
