#include "contract/plugin_services_fixture.hpp"

#include <gmock/gmock.h>

// What a plugin may request from the host, answered by the engine over a real store.
namespace berth::engine {
namespace {

using core::Reach;
using testing::ElementsAre;
using testing::IsEmpty;
using tests::http_answer;
using tests::LoopbackServer;
using tests::SeenRequest;

class PluginServicesTest : public PluginServicesContract {
 protected:
  bj::object own_state(const std::string& key) const {
    return {{"scopeKind", "company"}, {"scopeId", acme_->id.str()}, {"stateKey", key}};
  }
  bj::object with(bj::object base, bj::object more) const {
    for (const auto& member : more) base[member.key()] = member.value();
    return base;
  }
  bj::object own_entity(const std::string& external) const {
    return {{"entityType", "box"},    {"scopeKind", "company"}, {"scopeId", acme_->id.str()},
            {"externalId", external}, {"title", "A box"},       {"data", {{"size", 1}}}};
  }
  std::vector<std::string> external_ids(const std::optional<core::CompanyId>& company,
                                        bj::object query) {
    std::vector<std::string> out;
    const auto found = ask(company, "entities.list", std::move(query));
    EXPECT_TRUE(found) << found.error().message;
    for (const bj::value& one : found->as_array()) {
      out.emplace_back(one.at("externalId").as_string());
    }
    return out;
  }
  std::vector<core::SecretAccessEvent> reads_of(const core::SecretId& secret) {
    return finish(engine_->secrets.access_events(admin(), secret, {}))->rows;
  }
};
BERTH_ON_BOTH_ENGINES(PluginServicesTest);

TEST_P(PluginServicesTest, EveryMethodAnswersItsExample) {
  const LoopbackServer server{[](const SeenRequest&) { return http_answer(200, "pong"); }};
  const bj::object nowhere{{"scopeKind", "instance"}, {"stateKey", "never set"}};
  const std::map<std::string, std::pair<bj::object, bj::value>> examples{
      {"config.get", {{}, bj::object{{"tenant", "Acme"}, {"apiKey", ref_to(acme_->secret)}}}},
      {"state.get", {nowhere, nullptr}},
      {"state.set", {with(own_state("cursor"), {{"value", 7}}), nullptr}},
      {"state.delete", {nowhere, nullptr}},
      {"entities.upsert", {own_entity("x-1"), "box"}},
      {"entities.list", {{{"entityType", "cat"}}, bj::array{}}},
      {"secrets.resolve", {{{"secretRef", ref_to(acme_->secret)}}, "the value of key of Acme"}},
      {"activity.log", {{{"message", "made a box"}}, nullptr}},
      {"events.emit", {{{"name", "box.made"}}, nullptr}},
      {"events.subscribe", {{{"eventPattern", "run.*"}}, nullptr}},
      {"metrics.write", {{{"name", "boxes"}, {"value", 3}}, nullptr}},
      {"log", {{{"level", "info"}, {"message", "hello"}}, nullptr}},
      {"http.fetch", {{{"url", server.url()}}, "pong"}},
  };
  std::vector<std::string> exemplified;
  for (const auto& [method, example] : examples) {
    exemplified.push_back(method);
    const auto answer = ask(acme_->id, method, example.first);
    ASSERT_TRUE(answer) << method << ": " << answer.error().message;
    // Only one member of a response that is too large to repeat here.
    bj::value told = *answer;
    if (method == "entities.upsert") told = answer->at("entityType");
    if (method == "http.fetch") told = answer->at("body");
    EXPECT_EQ(told, example.second) << method;
  }
  EXPECT_EQ(exemplified, PluginServices::method_names());
}

TEST_P(PluginServicesTest, AMethodThatIsNotThereIsNotFound) {
  EXPECT_FALSE(services_->has("state.drop"));
  EXPECT_FAILS(ask(acme_->id, "state.drop", {}), Errc::route_not_found);
}

TEST_P(PluginServicesTest, WhatBelongsToACompanyNeedsOne) {
  const auto before = everything_kept();
  const std::map<std::string, bj::object> asked{
      {"config.get", {}},
      {"secrets.resolve", {{"secretRef", ref_to(acme_->secret)}}},
      {"activity.log", {{"message", "made a box"}}},
      {"events.emit", {{"name", "box.made"}}},
      {"state.set", with(own_state("cursor"), {{"value", 7}})},
      {"entities.upsert", own_entity("x-1")}};
  for (const auto& [method, params] : asked) {
    EXPECT_FAILS(ask(std::nullopt, method, params), Errc::forbidden) << method;
  }
  EXPECT_EQ(everything_kept(), before);
}

TEST_P(PluginServicesTest, AStateIsKeptReplacedAndDeleted) {
  EXPECT_EQ(*ask(acme_->id, "state.get", own_state("cursor")), nullptr);
  EXPECT_WORKS(ask(acme_->id, "state.set", with(own_state("cursor"), {{"value", {{"n", 1}}}})));
  EXPECT_EQ(*ask(acme_->id, "state.get", own_state("cursor")), (bj::object{{"n", 1}}));
  EXPECT_WORKS(ask(acme_->id, "state.set", with(own_state("cursor"), {{"value", "two"}})));
  EXPECT_EQ(*ask(acme_->id, "state.get", own_state("cursor")), "two");
  EXPECT_EQ(*ask(acme_->id, "state.get", with(own_state("cursor"), {{"namespace", "else"}})),
            nullptr);
  EXPECT_WORKS(ask(acme_->id, "state.delete", own_state("cursor")));
  EXPECT_EQ(*ask(acme_->id, "state.get", own_state("cursor")), nullptr);
  EXPECT_EQ(number("select count(*) from plugin_state"), 0);
}

TEST_P(PluginServicesTest, AStateHasALimitOfSizeOfKeyAndOfNumber) {
  const auto small = services({}, {.state_values_max = 1, .value_bytes_max = 16});
  const auto set = [&](const std::string& key, bj::value value) {
    return ask(*small, acme_->id, "state.set", with(own_state(key), {{"value", std::move(value)}}));
  };
  EXPECT_FAILS(set("a", bj::value(std::string(20, 'x'))), Errc::body_too_large);
  EXPECT_FAILS(set(std::string(513, 'k'), 1), Errc::validation_failed);
  EXPECT_EQ(number("select count(*) from plugin_state"), 0);
  EXPECT_WORKS(set("a", 1));
  EXPECT_FAILS(set("b", 1), Errc::overloaded);
  EXPECT_WORKS(set("a", 2));
  EXPECT_EQ(number("select count(*) from plugin_state"), 1);
  EXPECT_FAILS(ask(acme_->id, "state.set", {{"scopeKind", "moon"}, {"stateKey", "a"}}),
               Errc::validation_failed);
}

TEST_P(PluginServicesTest, AnEntityIsFoundAsItWasWritten) {
  const auto made = ask(acme_->id, "entities.upsert", own_entity("x-1"));
  ASSERT_TRUE(made) << made.error().message;
  const bj::object& box = made->as_object();
  EXPECT_EQ(box.at("data"), (bj::object{{"size", 1}}));
  EXPECT_EQ(box.at("scopeId"), bj::value(acme_->id.str()));
  EXPECT_EQ(box.at("title"), "A box");
  for (const char* ours : {"pluginId", "companyId", "document"}) EXPECT_FALSE(box.contains(ours));
  EXPECT_EQ(*ask(acme_->id, "entities.list", {{"externalId", "x-1"}}), (bj::array{*made}));
  const auto renamed =
      ask(acme_->id, "entities.upsert", with(own_entity("x-1"), {{"title", "Another"}}));
  EXPECT_EQ(renamed->at("id"), box.at("id"));
  EXPECT_EQ(renamed->at("title"), "Another");
  EXPECT_EQ(number("select count(*) from plugin_entities"), 1);
}

// The foreign rows are the newest, so that they fill the first page if they are counted at all.
TEST_P(PluginServicesTest, APageOfEntitiesHasOnlyThoseOfTheCallsCompany) {
  const auto add = [&](const Tenant& who, const std::string& external, const std::string& kind,
                       const std::string& id) {
    EXPECT_WORKS(ask(who.id, "entities.upsert",
                     with(own_entity(external), {{"scopeKind", kind}, {"scopeId", id}})));
  };
  EXPECT_WORKS(ask(std::nullopt, "entities.upsert",
                   {{"entityType", "box"},
                    {"scopeKind", "instance"},
                    {"externalId", "shared"},
                    {"data", bj::object{}}}));
  add(*acme_, "mine", "company", acme_->id.str());
  add(*acme_, "my agent's", "agent", acme_->agent.str());
  add(*other_, "theirs", "company", other_->id.str());
  add(*other_, "their agent's", "agent", other_->agent.str());
  add(*other_, "their project's", "project", "p-1");
  EXPECT_THAT(external_ids(acme_->id, {{"limit", 3}}), ElementsAre("my agent's", "mine", "shared"));
  EXPECT_THAT(external_ids(acme_->id, {{"limit", 1}, {"offset", 1}}), ElementsAre("mine"));
  EXPECT_THAT(external_ids(other_->id, {{"limit", 2}}),
              ElementsAre("their project's", "their agent's"));
  EXPECT_THAT(external_ids(std::nullopt, {}), ElementsAre("shared"));
}

TEST_P(PluginServicesTest, ASecretIsOpenedThroughItsBindingAndTheReadIsRecorded) {
  const auto value = ask(acme_->id, "secrets.resolve",
                         {{"secretRef", ref_to(acme_->secret)}, {"configPath", "apiKey"}});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ(*value, "the value of key of Acme");
  const auto seen = reads_of(acme_->secret);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].outcome, core::SecretAccessOutcome::success);
  EXPECT_EQ(seen[0].consumer_type, core::SecretConsumer::plugin);
  EXPECT_EQ(seen[0].consumer_id, plugin_target_id(*plugin_, acme_->id));
  EXPECT_EQ(seen[0].config_path, "apiKey");
}

TEST_P(PluginServicesTest, ASecretThatIsNotBoundToThePluginIsNotOpened) {
  const auto loose = finish(engine_->secrets.create(admin(), acme_->id, secret_named("loose")));
  EXPECT_FAILS(ask(acme_->id, "secrets.resolve", {{"secretRef", ref_to(loose->id)}}),
               Errc::binding_missing);
  EXPECT_FAILS(ask(acme_->id, "secrets.resolve",
                   {{"secretRef", ref_to(loose->id)}, {"configPath", "apiKey"}}),
               Errc::binding_missing);
  EXPECT_FAILS(ask(acme_->id, "secrets.resolve",
                   {{"secretRef", ref_to(acme_->secret)}, {"configPath", "else"}}),
               Errc::binding_missing);
  EXPECT_FAILS(ask(acme_->id, "secrets.resolve", {{"secretRef", acme_->secret.str()}}),
               Errc::validation_failed);
  EXPECT_EQ(reads_of(acme_->secret).at(0).outcome, core::SecretAccessOutcome::failure);
}

TEST_P(PluginServicesTest, SecretsAreReadSoOftenAMinuteAndNoMore) {
  const auto few = services({}, {.secret_reads_max = 2});
  const auto read_one = [&](const Tenant& who) {
    return ask(*few, who.id, "secrets.resolve", {{"secretRef", ref_to(who.secret)}});
  };
  EXPECT_WORKS(read_one(*acme_));
  EXPECT_WORKS(read_one(*acme_));
  EXPECT_FAILS(read_one(*acme_), Errc::overloaded);
  EXPECT_EQ(reads_of(acme_->secret).size(), 2U);
  EXPECT_WORKS(read_one(*other_));  // each company has its own count
  clock_.advance(std::chrono::minutes{1});
  EXPECT_WORKS(read_one(*acme_));
}

TEST_P(PluginServicesTest, AnActivityAndAnEventAreInTheTrailOfTheCallsCompany) {
  EXPECT_WORKS(ask(acme_->id, "activity.log",
                   {{"message", "made a box"},
                    {"entityType", "box"},
                    {"entityId", "b-1"},
                    {"metadata", {{"size", 1}}},
                    {"companyId", other_->id.str()}}));
  EXPECT_WORKS(
      ask(acme_->id, "events.emit",
          {{"name", "box.made"}, {"payload", {{"box", "b-1"}}}, {"companyId", other_->id.str()}}));
  const auto seen = trail(acme_->id);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[1].action, "plugin.logged");
  EXPECT_EQ(seen[1].entity_type, "box");
  EXPECT_EQ(seen[1].entity_id, "b-1");
  EXPECT_EQ(seen[1].actor_type, core::ActorType::system);
  EXPECT_EQ(seen[1].details, (bj::object{{"message", "made a box"},
                                         {"pluginKey", plugin_key},
                                         {"metadata", bj::object{{"size", 1}}}}));
  EXPECT_EQ(seen[0].action, "plugin.acme.cloud.box.made");
  EXPECT_EQ(seen[0].entity_id, plugin_->str());
  EXPECT_EQ(seen[0].details.at("payload"), (bj::object{{"box", "b-1"}}));
  EXPECT_THAT(trail(other_->id), IsEmpty());
  EXPECT_FAILS(ask(acme_->id, "events.emit", {{"name", "Run Started"}}), Errc::validation_failed);
  EXPECT_FAILS(ask(acme_->id, "activity.log", {{"text", "no message"}}), Errc::validation_failed);
}

TEST_P(PluginServicesTest, ASubscriptionHearsTheEventsOfItsFilterFromThenOn) {
  std::vector<std::string> heard;
  services_->deliver_events_by([&](const core::PluginId& plugin, const core::CompanyId& company,
                                   const bj::object& event) {
    EXPECT_EQ(plugin, *plugin_);
    EXPECT_EQ(event.at("companyId"), bj::value(company.str()));
    const bool is_own = company == acme_->id;
    heard.push_back((is_own ? "acme " : "other ") + std::string{event.at("eventType").as_string()});
  });
  const auto emit = [&](const Tenant& who, const std::string& name) {
    EXPECT_WORKS(ask(who.id, "events.emit", {{"name", name}}));
  };
  emit(*acme_, "early");
  EXPECT_WORKS(
      ask(acme_->id, "events.subscribe",
          {{"eventPattern", "plugin.acme.cloud.*"}, {"filter", {{"companyId", acme_->id.str()}}}}));
  emit(*other_, "theirs");
  emit(*acme_, "first");
  work_until([&] { return !heard.empty(); });
  // One round handles every company: with the second event the round of the first is over.
  emit(*acme_, "second");
  work_until([&] { return heard.size() == 2; });
  EXPECT_THAT(heard, ElementsAre("acme plugin.acme.cloud.first", "acme plugin.acme.cloud.second"));
  EXPECT_FAILS(ask(acme_->id, "events.subscribe", {{"eventPattern", "*"}}),
               Errc::validation_failed);
}

TEST_P(PluginServicesTest, AMetricAndALineAreInTheLogOfTheCallsCompany) {
  EXPECT_WORKS(ask(acme_->id, "metrics.write",
                   {{"name", "boxes"}, {"value", 3}, {"tags", {{"zone", "a"}}}}));
  EXPECT_WORKS(
      ask(acme_->id, "log", {{"level", "warn"}, {"message", "late"}, {"meta", {{"by", 5}}}}));
  EXPECT_WORKS(ask(std::nullopt, "log", {{"level", "strange"}, {"message", "of no call"}}));
  const auto own = lines(Reach::only(acme_->id));
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(own[1].level, core::PluginLogLevel::metric);
  EXPECT_EQ(own[1].message, "boxes");
  EXPECT_EQ(own[1].meta, (bj::object{{"value", 3}, {"tags", bj::object{{"zone", "a"}}}}));
  EXPECT_EQ(own[0].level, core::PluginLogLevel::warn);
  EXPECT_EQ(own[0].message, "late");
  EXPECT_EQ(own[0].meta, (bj::object{{"by", 5}}));
  EXPECT_THAT(lines(Reach::only(other_->id)), IsEmpty());
  const auto all = lines(Reach::everything());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].level, core::PluginLogLevel::info);
  EXPECT_FAILS(ask(acme_->id, "metrics.write", {{"name", "boxes"}, {"value", "three"}}),
               Errc::validation_failed);
}

TEST_P(PluginServicesTest, WhoWritesTooOftenIsRefusedAndToldSoOnce) {
  const core::Rate one{.burst = 1, .every = std::chrono::hours{1}};
  const auto calm = services({}, {.kept = one, .replaced = one, .lines = one});
  const std::map<std::string, bj::object> writes{
      {"activity.log", {{"message", "made a box"}}},
      {"state.set", with(own_state("cursor"), {{"value", 7}})},
      {"metrics.write", {{"name", "boxes"}, {"value", 3}}}};
  for (const auto& [method, params] : writes) {
    EXPECT_WORKS(ask(*calm, acme_->id, method, params));
    EXPECT_FAILS(ask(*calm, acme_->id, method, params), Errc::rate_limited) << method;
    EXPECT_FAILS(ask(*calm, acme_->id, method, params), Errc::rate_limited) << method;
  }
  EXPECT_FAILS(ask(*calm, acme_->id, "events.emit", {{"name", "a"}}), Errc::rate_limited);
  EXPECT_FAILS(ask(*calm, acme_->id, "entities.upsert", own_entity("x")), Errc::rate_limited);
  EXPECT_FAILS(ask(*calm, acme_->id, "log", {{"message", "a"}}), Errc::rate_limited);
  EXPECT_EQ(trail(acme_->id).size(), 1U);
  EXPECT_EQ(number("select count(*) from plugin_entities"), 0);
  std::size_t told = 0;
  for (const auto& line : lines(Reach::only(acme_->id))) {
    told += line.message.contains("too often") ? 1 : 0;
  }
  EXPECT_EQ(told, 3U);
}

TEST_P(PluginServicesTest, AFailureOfTheStoreReachesTheWorkerAndLeavesNothing) {
  for (const std::string method : {"state.set", "entities.upsert", "activity.log", "events.emit"}) {
    bj::object params = with(own_entity("x-1"), own_state("cursor"));
    params = with(params, {{"value", 1}, {"message", "a"}, {"name", "a"}});
    const auto before = everything_kept();
    std::int64_t statement = 1;
    for (failing_->fail_at(1); !ask(acme_->id, method, params); failing_->fail_at(++statement)) {
      EXPECT_EQ(everything_kept(), before) << method << " at statement " << statement;
    }
    failing_->fail_at(0);
    EXPECT_GT(statement, 1) << method;
    EXPECT_NE(everything_kept(), before) << method;
  }
}

TEST_P(PluginServicesTest, AFetchCarriesTheRequestAndItsWholeAnswer) {
  const LoopbackServer server{
      [](const SeenRequest&) { return http_answer(201, "made \xff", "X-Two: a\r\nX-Two: b\r\n"); }};
  const std::string port = server.url().substr(server.url().rfind(':'));
  const auto answer =
      ask(acme_->id, "http.fetch",
          {{"url", "http://api.example" + port + "/boxes?a=1"},
           {"init", {{"method", "POST"}, {"headers", {{"X-Key", "k"}}}, {"body", "{}"}}}});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->at("status"), 201);
  EXPECT_EQ(answer->at("statusText"), "X");
  EXPECT_EQ(answer->at("headers").at("x-two"), "a, b");
  EXPECT_EQ(answer->at("body"), "made ?") << "what is not UTF-8 is replaced";
  ASSERT_EQ(server.seen().size(), 1U);
  EXPECT_EQ(server.seen()[0].line, "POST /boxes?a=1 HTTP/1.1");
  EXPECT_EQ(server.seen()[0].header("Host"), "api.example" + port);
  EXPECT_EQ(server.seen()[0].header("X-Key"), "k");
  EXPECT_EQ(server.seen()[0].body, "{}");
}

TEST_P(PluginServicesTest, AFetchReachesNoPrivateAddressThatIsNotAllowed) {
  const LoopbackServer server{[](const SeenRequest&) { return http_answer(200, "inside"); }};
  const std::string port = server.url().substr(server.url().rfind(':'));
  const auto strict = services({});
  for (const std::string& url : {server.url(), "http://api.example" + port, "http://[::1]" + port,
                                 "http://2130706433" + port, std::string{"http://inside.example/"},
                                 std::string{"http://169.254.169.254/latest/meta-data"}}) {
    EXPECT_FAILS(ask(*strict, acme_->id, "http.fetch", {{"url", url}}), Errc::forbidden) << url;
  }
  EXPECT_THAT(server.seen(), IsEmpty());
  // An allowed address does not open any other.
  EXPECT_WORKS(ask(acme_->id, "http.fetch", {{"url", server.url()}}));
  EXPECT_FAILS(ask(acme_->id, "http.fetch", {{"url", "http://inside.example/"}}), Errc::forbidden);
  EXPECT_FAILS(ask(acme_->id, "http.fetch", {{"url", "file:///etc/passwd"}}),
               Errc::validation_failed);
  EXPECT_FAILS(ask(acme_->id, "http.fetch", {{"url", "http://unknown.example/"}}),
               Errc::server_unreachable);
  EXPECT_EQ(server.seen().size(), 1U);
}

}  // namespace
}  // namespace berth::engine
