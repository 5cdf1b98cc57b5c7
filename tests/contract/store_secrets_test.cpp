#include "contract/store_fixture.hpp"
#include "store/activity.hpp"
#include "store/idempotency.hpp"
#include "store/secrets.hpp"
#include "store/settings.hpp"
#include "store/tokens.hpp"

// Secrets, tokens, activity, settings and stored responses.
namespace berth::store {
namespace {

using core::Reach;
using core::SecretTarget;

using Secrets = StoreContract;
using Tokens = StoreContract;
using Trail = StoreContract;
using Settings = StoreContract;
using Answers = StoreContract;
BERTH_ON_BOTH_ENGINES(Secrets);
BERTH_ON_BOTH_ENGINES(Tokens);
BERTH_ON_BOTH_ENGINES(Trail);
BERTH_ON_BOTH_ENGINES(Settings);
BERTH_ON_BOTH_ENGINES(Answers);

TEST_P(Secrets, ANameAndAKeyAreTakenOncePerCompany) {
  const core::Company acme = given_company();
  given_secret(acme.id, "db");
  const core::SecretRecord same_name = secret(acme.id, "db");
  const auto by_name = write([&](Session& s) { return insert_secret(s, same_name); });
  ASSERT_FALSE(by_name);
  EXPECT_EQ(name_of(by_name.error().code), name_of(Errc::secret_name_taken))
      << "both indexes refuse this row, and the name is what a person has typed";

  core::SecretRecord other_key = secret(acme.id, "db");
  other_key.key = "other";
  const auto name_taken = write([&](Session& s) { return insert_secret(s, other_key); });
  ASSERT_FALSE(name_taken);
  EXPECT_EQ(name_of(name_taken.error().code), name_of(Errc::secret_name_taken));
  EXPECT_EQ(name_taken.error().message, "Secret already exists: db");

  core::SecretRecord other_name = secret(acme.id, "other");
  other_name.key = "db";
  const auto key_taken = write([&](Session& s) { return insert_secret(s, other_name); });
  ASSERT_FALSE(key_taken);
  EXPECT_EQ(name_of(key_taken.error().code), name_of(Errc::secret_key_taken));
  EXPECT_EQ(key_taken.error().message, "Secret key already exists: db");

  given_secret(given_company("Other").id, "db");
}

TEST_P(Secrets, ADeletedNameIsFreeAndNotFound) {
  const core::Company acme = given_company();
  Stored<core::SecretRecord> old{given_secret(acme.id, "db"), 1};
  old.value.deleted_at = now();
  EXPECT_WORKS(write([&](Session& s) { return update_secret(s, old); }));
  const Reach reach = Reach::only(acme.id);
  EXPECT_FAILS(read([&](Session& s) { return find_secret(s, reach, old.value.id); }),
               Errc::secret_not_found);
  given_secret(acme.id, "db");
  EXPECT_EQ(read([&](Session& s) { return list_secrets(s, acme.id, {}); })->rows.size(), 1U);
}

TEST_P(Secrets, AForeignOneCannotBeToldFromAMissingOne) {
  const core::SecretRecord key = given_secret(given_company().id, "db");
  const Reach other = Reach::only(given_company("Other").id);
  const auto find = [&](const core::SecretId& id) {
    return read([&](Session& s) { return find_secret(s, other, id); }).error();
  };
  EXPECT_EQ(find(key.id), find(fresh<core::SecretId>()));
  EXPECT_EQ(name_of(find(key.id).code), name_of(Errc::secret_not_found));
}

TEST_P(Secrets, ChangesAreComparedAndSet) {
  const core::Company acme = given_company();
  given_secret(acme.id, "taken");
  Stored<core::SecretRecord> row{given_secret(acme.id, "db"), 1};
  row.value.status = core::SecretStatus::disabled;
  EXPECT_WORKS(write([&](Session& s) { return update_secret(s, row); }));
  EXPECT_FAILS(write([&](Session& s) { return update_secret(s, row); }), Errc::conflict);
  row.version = 2;
  row.value.name = "taken";
  EXPECT_FAILS(write([&](Session& s) { return update_secret(s, row); }), Errc::secret_name_taken);
}

TEST_P(Secrets, ANewVersionMakesTheFormerPrevious) {
  const core::SecretRecord key = given_secret(given_company().id, "db");
  for (const std::int64_t n : {1, 2, 3}) {
    const core::SecretVersion next = version(key.id, n);
    EXPECT_WORKS(write([&](Session& s) { return insert_version(s, next); }));
  }
  const auto list = read([&](Session& s) { return list_versions(s, key.id); });
  ASSERT_EQ(list->size(), 3U);
  using core::SecretVersionStatus;
  EXPECT_EQ((*list)[0].number, 3);
  EXPECT_EQ(name_of((*list)[0].status), name_of(SecretVersionStatus::current));
  EXPECT_EQ(name_of((*list)[1].status), name_of(SecretVersionStatus::previous));
  EXPECT_EQ(name_of((*list)[2].status), name_of(SecretVersionStatus::previous));
  EXPECT_EQ((*read([&](Session& s) { return find_version(s, key.id, 2); }))->number, 2);
  EXPECT_FALSE(*read([&](Session& s) { return find_version(s, key.id, 9); }));
}

TEST_P(Secrets, ASecondRotationToTheSameNumberIsStale) {
  const core::SecretRecord key = given_secret(given_company().id, "db");
  const core::SecretVersion mine = version(key.id, 1);
  const core::SecretVersion yours = version(key.id, 1);
  EXPECT_WORKS(write([&](Session& s) { return insert_version(s, mine); }));
  EXPECT_FAILS(write([&](Session& s) { return insert_version(s, yours); }),
               Errc::secret_version_stale);
  const auto found = read([&](Session& s) { return find_version(s, key.id, 1); });
  EXPECT_EQ((*found)->id, mine.id);
  EXPECT_EQ(name_of((*found)->status), name_of(core::SecretVersionStatus::current));
}

TEST_P(Secrets, ResealingWalksAllVersionsAndLosesToAFasterOne) {
  const core::SecretRecord key = given_secret(given_company().id, "db");
  for (const std::int64_t n : {1, 2, 3}) {
    const core::SecretVersion next = version(key.id, n);
    EXPECT_WORKS(write([&](Session& s) { return insert_version(s, next); }));
  }
  std::string after;
  int resealed = 0;
  for (;;) {
    const auto page =
        read([&](Session& s) { return versions_not_sealed_with(s, "key-2", after, 2); });
    ASSERT_TRUE(page) << page.error().message;
    if (page->empty()) break;
    for (core::SecretVersion next : *page) {
      after = next.id.str();
      next.key_id = "key-2";
      next.material = "sealed anew";
      EXPECT_TRUE(*write([&](Session& s) { return reseal_version(s, next, "key-1"); }));
      EXPECT_FALSE(*write([&](Session& s) { return reseal_version(s, next, "key-1"); }));
      ++resealed;
    }
    const auto keys = read([&](Session& s) { return key_ids_in_use(s); });
    EXPECT_EQ(keys->size(), resealed == 3 ? 1U : 2U);
  }
  EXPECT_EQ(resealed, 3);
  EXPECT_EQ((*read([&](Session& s) { return find_version(s, key.id, 1); }))->material,
            "sealed anew");
}

TEST_P(Secrets, ReplacingBindingsLeavesThoseOfOtherPathsAndTargets) {
  const core::Company acme = given_company();
  const core::SecretRecord key = given_secret(acme.id, "db");
  const std::string box = fresh<core::EnvironmentId>().str();
  const std::string other = fresh<core::EnvironmentId>().str();
  const auto bind = [&](const std::string& target, const std::string& path) {
    return binding(key, SecretTarget::environment, target, path);
  };
  const auto replace = [&](const BindingScope& scope,
                           const std::vector<core::SecretBinding>& bindings) {
    EXPECT_WORKS(write([&](Session& s) { return replace_bindings(s, scope, bindings); }));
  };
  const auto paths = [&](const std::string& target) {
    std::string text;
    const auto found =
        read([&](Session& s) { return bindings_of_target(s, SecretTarget::environment, target); });
    for (const core::SecretBinding& found_one : *found) text += found_one.config_path + " ";
    return text;
  };
  replace({SecretTarget::environment, other, "", ""}, {bind(other, "x")});
  replace({SecretTarget::environment, box, "", "env."}, {bind(box, "key"), bind(box, "env")});
  replace({SecretTarget::environment, box, "env.", ""}, {bind(box, "env.A"), bind(box, "env.B")});
  EXPECT_EQ(paths(box), "env env.A env.B key ");
  replace({SecretTarget::environment, box, "env.", ""}, {bind(box, "env.C")});
  EXPECT_EQ(paths(box), "env env.C key ");
  replace({SecretTarget::environment, box, "", "env."}, {});
  EXPECT_EQ(paths(box), "env.C ");
  EXPECT_EQ(paths(other), "x ");
  EXPECT_EQ(read([&](Session& s) { return binding_counts(s, acme.id); })->at(key.id.str()), 2);
  EXPECT_EQ(read([&](Session& s) { return bindings_of_secret(s, key.id); })->size(), 2U);
}

TEST_P(Secrets, ABindingOfASecretThatIsGoneIsRefused) {
  const core::SecretRecord never_inserted = secret(given_company().id, "db");
  const std::vector<core::SecretBinding> bindings{
      binding(never_inserted, SecretTarget::environment, "e", "x")};
  EXPECT_FAILS(write([&](Session& s) {
                 return replace_bindings(s, {SecretTarget::environment, "e", "", ""}, bindings);
               }),
               Errc::secret_not_found);
}

TEST_P(Secrets, DeletionTakesVersionsBindingsAndEvents) {
  const core::SecretRecord key = given_secret(given_company().id, "db");
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_DO(insert_version(s, version(key.id, 1)));
    BERTH_DO(insert_access_event(s, access_event(key)));
    return replace_bindings(s, {SecretTarget::environment, "e", "", ""},
                            {binding(key, SecretTarget::environment, "e", "x")});
  }));
  EXPECT_EQ(read([&](Session& s) { return list_access_events(s, key.id, {}); })->rows.size(), 1U);
  EXPECT_WORKS(write([&](Session& s) { return delete_secret(s, key.id); }));
  for (const char* table :
       {"company_secret_versions", "company_secret_bindings", "secret_access_events"}) {
    EXPECT_EQ(number(std::string{"select count(*) from "} + table), 0) << table;
  }
  EXPECT_FAILS(write([&](Session& s) { return delete_secret(s, key.id); }), Errc::secret_not_found);
}

TEST_P(Secrets, OwnedByAnEnvironmentAreFoundByIt) {
  const core::Company acme = given_company();
  core::SecretRecord owned = secret(acme.id, "owned");
  owned.owned_by_environment_id = fresh<core::EnvironmentId>();
  EXPECT_WORKS(write([&](Session& s) { return insert_secret(s, owned); }));
  given_secret(acme.id, "free");
  const auto list =
      read([&](Session& s) { return secrets_owned_by(s, *owned.owned_by_environment_id); });
  ASSERT_EQ(list->size(), 1U);
  EXPECT_EQ(list->front(), owned.id);
}

TEST_P(Tokens, OpenUntilTheyAreRevokedOrExpire) {
  core::Token short_lived = token(given_company().id);
  short_lived.expires_at = now() + 1000;
  EXPECT_WORKS(write([&](Session& s) { return insert_token(s, short_lived, "h1"); }));
  const auto opens = [&](const std::string& hash) {
    return read([&](Session& s) { return find_token_by_hash(s, hash, now()); })->has_value();
  };
  EXPECT_TRUE(opens("h1"));
  EXPECT_FALSE(opens("h2"));
  clock_.advance(std::chrono::seconds{1});
  EXPECT_FALSE(opens("h1"));

  const core::Token lasting = token(std::nullopt);
  EXPECT_WORKS(write([&](Session& s) { return insert_token(s, lasting, "h3"); }));
  EXPECT_TRUE(opens("h3"));
  EXPECT_WORKS(write([&](Session& s) { return revoke_token(s, lasting.id, now()); }));
  EXPECT_FALSE(opens("h3"));
  const Time first = now();
  clock_.advance(std::chrono::seconds{1});
  EXPECT_WORKS(write([&](Session& s) { return revoke_token(s, lasting.id, now()); }));
  const auto row = read([&](Session& s) { return find_token(s, Reach::everything(), lasting.id); });
  EXPECT_EQ(row->value.revoked_at, first);
  EXPECT_FAILS(write([&](Session& s) { return revoke_token(s, fresh<core::TokenId>(), now()); }),
               Errc::token_not_found);
  EXPECT_EQ(*read([&](Session& s) { return count_tokens(s); }), 2);
}

TEST_P(Tokens, AHashIsUsedOnce) {
  const core::Token one = token(std::nullopt);
  const core::Token two = token(std::nullopt);
  EXPECT_WORKS(write([&](Session& s) { return insert_token(s, one, "h"); }));
  EXPECT_FAILS(write([&](Session& s) { return insert_token(s, two, "h"); }), Errc::conflict);
}

TEST_P(Tokens, WithoutACompanyAreSeenByInstanceAdministratorsOnly) {
  const core::Company acme = given_company();
  const core::Token instance_wide = token(std::nullopt);
  const core::Token of_acme = token(acme.id);
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_DO(insert_token(s, instance_wide, "h1"));
    return insert_token(s, of_acme, "h2");
  }));
  const auto count = [&](const Reach& reach) {
    return read([&](Session& s) { return list_tokens(s, reach, {}); })->rows.size();
  };
  EXPECT_EQ(count(Reach::everything()), 2U);
  EXPECT_EQ(count(Reach::only(acme.id)), 1U);
  const auto find = [&](const core::TokenId& id) {
    return read([&](Session& s) { return find_token(s, Reach::only(acme.id), id); });
  };
  EXPECT_WORKS(find(of_acme.id));
  EXPECT_FAILS(find(instance_wide.id), Errc::token_not_found);
}

TEST_P(Tokens, AreTouchedAtMostOnceAMinute) {
  const core::Token used = token(std::nullopt);
  EXPECT_WORKS(write([&](Session& s) { return insert_token(s, used, "h"); }));
  const auto touch = [&] {
    EXPECT_WORKS(write([&](Session& s) { return touch_token(s, used.id, now()); }));
    return read([&](Session& s) { return find_token(s, Reach::everything(), used.id); })
        ->value.last_used_at;
  };
  const Time first = now();
  EXPECT_EQ(touch(), first);
  clock_.advance(std::chrono::seconds{59});
  EXPECT_EQ(touch(), first);
  clock_.advance(std::chrono::seconds{1});
  EXPECT_EQ(touch(), now());
}

TEST_P(Trail, IsFilteredAndFollowed) {
  const core::Company acme = given_company();
  std::vector<core::Activity> made;
  for (const char* entity : {"a", "b", "a"}) {
    made.push_back(activity(acme.id, entity));
    clock_.advance(std::chrono::milliseconds{1});
  }
  made[1].action = "secret.created";
  made[1].entity_type = "secret";
  for (const core::Activity& one : made) {
    EXPECT_WORKS(write([&](Session& s) { return insert_activity(s, one); }));
  }
  const auto count = [&](const ActivityFilter& filter) {
    return read([&](Session& s) { return list_activity(s, acme.id, filter, {}); })->rows.size();
  };
  EXPECT_EQ(count({}), 3U);
  EXPECT_EQ(count({.entity_type = "environment", .entity_id = "", .action = ""}), 2U);
  EXPECT_EQ(count({.entity_type = "environment", .entity_id = "a", .action = ""}), 2U);
  EXPECT_EQ(count({.entity_type = "", .entity_id = "", .action = "secret.created"}), 1U);

  const auto after = [&](const core::CompanyId& company, const core::EventId& event) {
    return *read([&](Session& s) { return activity_after(s, company, event, 10); });
  };
  const auto rest = after(acme.id, made[0].id);
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_EQ(rest[0].id, made[1].id);
  EXPECT_EQ(rest[1].id, made[2].id);
  EXPECT_TRUE(after(acme.id, fresh<core::EventId>()).empty());
  EXPECT_TRUE(after(given_company("Other").id, made[0].id).empty());
}

TEST_P(Settings, AreComparedAndSet) {
  const auto save = [&](const char* value, std::int64_t seen) {
    return write(
        [&](Session& s) { return save_setting(s, "general", {{"v", value}}, seen, now()); });
  };
  EXPECT_FALSE(*read([&](Session& s) { return find_setting(s, "general"); }));
  EXPECT_WORKS(save("one", 0));
  EXPECT_FAILS(save("two", 0), Errc::conflict);
  EXPECT_WORKS(save("two", 1));
  EXPECT_FAILS(save("three", 1), Errc::conflict);
  const auto found = read([&](Session& s) { return find_setting(s, "general"); });
  EXPECT_EQ((*found)->version, 2);
  EXPECT_EQ((*found)->value.at("v").as_string(), "two");
}

TEST_P(Answers, AreKeptOncePerCallerAndKeyAndForgotten) {
  const auto keep = [&](const char* caller, const char* key, Time at) {
    return write([&](Session& s) { return keep_answer(s, {caller, key, "print", "answer", at}); });
  };
  EXPECT_WORKS(keep("ann", "k", Time{1}));
  EXPECT_FAILS(keep("ann", "k", Time{2}), Errc::conflict);
  EXPECT_WORKS(keep("bob", "k", Time{2}));
  EXPECT_WORKS(keep("bob", "l", Time{3}));
  const auto find = [&](const char* caller, const char* key) {
    return *read([&](Session& s) { return find_answer(s, caller, key); });
  };
  EXPECT_EQ(find("ann", "k")->created_at, Time{1});
  EXPECT_FALSE(find("ann", "l"));
  const auto one = *find("bob", "l");
  EXPECT_FAILS(write([&](Session& s) {
                 return forget_answer(s, {one.caller, one.key, one.fingerprint, "older", Time{3}});
               }),
               Errc::conflict);
  EXPECT_WORKS(write([&](Session& s) { return forget_answer(s, one); }));
  EXPECT_FALSE(find("bob", "l"));
  EXPECT_WORKS(keep("bob", "l", Time{3}));
  const auto forget = [&](Time older, std::int64_t limit) {
    return *write([&](Session& s) { return forget_answers(s, older, limit); });
  };
  EXPECT_EQ(forget(Time{3}, 1), 1);
  EXPECT_FALSE(find("ann", "k")) << "the oldest goes first";
  EXPECT_EQ(forget(Time{3}, 10), 1);
  EXPECT_EQ(forget(Time{3}, 10), 0);
  EXPECT_TRUE(find("bob", "l"));
}

TEST_P(Answers, ASealedSettingIsApartFromAnOpenOneAndItsKeyIsInUse) {
  const SealedSetting first{"key-1", "sealed"};
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_DO(save_setting(s, "x", bj::object{{"open", true}}, 0, now()));
    return save_sealed_setting(s, "x", first, 0, now());
  }));
  EXPECT_FAILS(write([&](Session& s) { return save_sealed_setting(s, "x", first, 0, now()); }),
               Errc::conflict);
  const auto found = read([&](Session& s) { return find_sealed_setting(s, "x"); });
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->value.material, "sealed");
  EXPECT_FALSE(*read([&](Session& s) { return find_sealed_setting(s, "y"); }));
  EXPECT_EQ(*read([&](Session& s) { return key_ids_in_use(s); }),
            std::vector<std::string>{"key-1"});

  const SealedSetting second{"key-2", "sealed anew"};
  EXPECT_WORKS(write([&](Session& s) { return save_sealed_setting(s, "x", second, 1, now()); }));
  const auto all = read([&](Session& s) { return list_sealed_settings(s); });
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->at("x").value.key_id, "key-2");
  EXPECT_EQ(all->at("x").version, 2);
}

}  // namespace
}  // namespace berth::store
