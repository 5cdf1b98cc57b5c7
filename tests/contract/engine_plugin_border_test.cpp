#include "contract/plugin_services_fixture.hpp"
#include "plugins/gate.hpp"

#include <set>

// A worker that works for one company and names another company's objects.
namespace berth::engine {
namespace {

class PluginBorder : public PluginServicesContract {
 protected:
  void SetUp() override {
    PluginServicesContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // Both companies store something, under names that the other can guess.
    for (const Tenant& who : {*acme_, *other_}) {
      for (const bj::object& scope : scopes_of(who)) {
        bj::object kept = scope;
        kept["value"] = "kept by " + who.id.str();
        EXPECT_WORKS(ask(who.id, "state.set", kept));
        EXPECT_WORKS(ask(who.id, "entities.upsert", kept));
      }
    }
    EXPECT_WORKS(ask(other_->id, "entities.upsert", project_of_other()));
  }

  // Complete for states and for entities.
  static bj::object scope(const std::string& kind, const std::string& id) {
    return {{"scopeKind", kind},   {"scopeId", id},       {"stateKey", "k"},
            {"entityType", "box"}, {"externalId", "x-1"}, {"data", bj::object{}}};
  }
  static std::vector<bj::object> scopes_of(const Tenant& who) {
    return {scope("company", who.id.str()), scope("agent", who.agent.str()),
            scope("run", who.run.str())};
  }
  static bj::object project_of_other() { return scope("project", "p-1"); }

  // What a supervisor does with a request under a call for Acme.
  Result<bj::value> ask_under_call(const std::string& method, const bj::object& params) {
    const plugins::Request request{
        .id = 1, .method = method, .params = params, .invocation_id = "call"};
    const plugins::OpenInvocations open{.companies = {{"call", acme_->id.str()}},
                                        .configured = {acme_->id.str(), other_->id.str()}};
    const auto admitted = plugins::admit(request, manifest_, plugins::context_of(request, open));
    if (!admitted) {
      EXPECT_EQ(admitted.error().code, plugins::rpc_code::scope_denied) << method;
      return fail(Errc::forbidden, admitted.error().message);
    }
    EXPECT_EQ(*admitted, acme_->id.str()) << method;
    return ask(acme_->id, method, params);
  }

  // Each with the other company's objects; the second half has passed the gate with Acme's id.
  std::vector<bj::object> scoped_attempts() {
    std::vector<bj::object> out;
    for (bj::object attempt : scopes_of(*other_)) {
      attempt["value"] = "overwritten";
      out.push_back(attempt);
      attempt["companyId"] = acme_->id.str();
      out.push_back(attempt);
    }
    return out;
  }
  std::multimap<std::string, bj::object> attempts();

  plugins::Manifest manifest_{
      .id = plugin_key,
      .capabilities = {"plugin.state.read", "plugin.state.write", "events.emit", "events.subscribe",
                       "http.outbound", "secrets.read-ref", "activity.log.write", "metrics.write"}};
};
BERTH_ON_BOTH_ENGINES(PluginBorder);

std::multimap<std::string, bj::object> PluginBorder::attempts() {
  const std::string theirs = other_->id.str();
  std::multimap<std::string, bj::object> out{
      {"config.get", {{"companyId", theirs}}},
      {"secrets.resolve", {{"companyId", theirs}, {"secretRef", ref_to(other_->secret)}}},
      {"secrets.resolve", {{"secretRef", ref_to(other_->secret)}}},
      {"secrets.resolve", {{"secretRef", ref_to(other_->secret)}, {"configPath", "apiKey"}}},
      {"activity.log", {{"companyId", theirs}, {"message", "made a box"}}},
      {"events.emit", {{"companyId", theirs}, {"name", "box.made"}}},
      {"events.subscribe", {{"eventPattern", "run.*"}, {"filter", {{"companyId", theirs}}}}},
      {"events.subscribe",
       {{"eventPattern", "run.*"},
        {"companyId", acme_->id.str()},
        {"filter", {{"companyId", theirs}}}}},
      {"metrics.write", {{"companyId", theirs}, {"name", "boxes"}, {"value", 3}}},
      {"log", {{"companyId", theirs}, {"message", "hello"}}},
      {"http.fetch", {{"companyId", theirs}, {"url", "http://127.0.0.1:1/"}}},
      {"entities.upsert", project_of_other()},
  };
  for (const std::string method :
       {"state.get", "state.set", "state.delete", "entities.upsert", "entities.list"}) {
    for (const bj::object& attempt : scoped_attempts()) out.emplace(method, attempt);
  }
  return out;
}

TEST_P(PluginBorder, NoMethodReachesWhatBelongsToAnotherCompany) {
  const auto before = everything_kept();
  std::set<std::string> tried;
  for (const auto& [method, params] : attempts()) {
    tried.insert(method);
    const auto answer = ask_under_call(method, params);
    EXPECT_FALSE(answer) << method << " " << encode_text(params) << " was answered with "
                         << encode_text(*answer);
    EXPECT_EQ(everything_kept(), before) << method << " " << encode_text(params);
  }
  const auto names = PluginServices::method_names();
  EXPECT_EQ(tried, (std::set<std::string>{names.begin(), names.end()}));
}

// The same under the company's own names: the attempts above fail only because of the company they
// name.
TEST_P(PluginBorder, TheSameNamesAreAnsweredToTheirOwner) {
  for (const bj::object& own : scopes_of(*acme_)) {
    EXPECT_EQ(*ask_under_call("state.get", own), bj::value("kept by " + acme_->id.str()));
    EXPECT_EQ(ask_under_call("entities.list", own)->as_array().size(), 1U);
    EXPECT_WORKS(ask_under_call("entities.upsert", own));
    EXPECT_WORKS(ask_under_call("state.delete", own));
  }
  EXPECT_WORKS(ask_under_call("secrets.resolve", {{"secretRef", ref_to(acme_->secret)}}));
  EXPECT_WORKS(ask_under_call("events.subscribe", {{"eventPattern", "run.*"},
                                                   {"filter", {{"companyId", acme_->id.str()}}}}));
}

TEST_P(PluginBorder, AListNamesNothingOfAnotherCompany) {
  const auto found = ask_under_call("entities.list", {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->as_array().size(), scopes_of(*acme_).size());
  for (const bj::value& one : found->as_array()) {
    const std::string id{one.at("scopeId").as_string()};
    for (const bj::object& own : scopes_of(*other_)) EXPECT_NE(id, own.at("scopeId").as_string());
    EXPECT_NE(id, "p-1");
  }
}

}  // namespace
}  // namespace berth::engine
