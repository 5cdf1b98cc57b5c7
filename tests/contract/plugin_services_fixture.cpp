#include "contract/plugin_services_fixture.hpp"

#include "store/agents.hpp"

#include <algorithm>

namespace berth::engine {
namespace {

std::string text_of(const store::Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "null";
}

}  // namespace

void PluginServicesContract::SetUp() {
  EngineContract::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  plugin_ = fresh<core::PluginId>();
  const core::Plugin row{.id = *plugin_,
                         .plugin_key = plugin_key,
                         .package_name = "/srv/cloud",
                         .package_version = "1.2.3",
                         .categories = {"workspace"},
                         .manifest = {{"id", plugin_key}},
                         .package_path = "/srv/cloud",
                         .installed_at = now(),
                         .updated_at = now()};
  EXPECT_WORKS(write([&](store::Session& s) { return store::insert_plugin(s, row); }));
  acme_ = tenant("Acme");
  other_ = tenant("Other");
  services_ = services({*egress::Range::parse("127.0.0.0/8")});
}

void PluginServicesContract::TearDown() {
  if (!services_) return;
  EXPECT_WORKS(finish(services_->stop()));
  // Until no thread of the store holds the loop any more.
  loop_.restart();
  loop_.run();
}

PluginServicesContract::Tenant PluginServicesContract::tenant(const std::string& name) {
  const auto company = EngineContract::run(engine_->companies.create(admin(), {name, {}}));
  const core::CompanyId id = company->value.id;
  const core::Agent worker = agent(id);
  EXPECT_WORKS(write([&](store::Session& s) { return store::insert_agent(s, worker); }));
  const auto secret =
      EngineContract::run(engine_->secrets.create(admin(), id, secret_named("key of " + name)));
  EXPECT_WORKS(EngineContract::run(engine_->plugins.set_config(
      admin(), plugin_key, {id, {{"tenant", name}, {"apiKey", ref_to(secret->id)}}})));
  return {.id = id, .agent = worker.id, .run = given_run(id).id, .secret = secret->id};
}

std::unique_ptr<PluginServices> PluginServicesContract::services(std::vector<egress::Range> allowed,
                                                                 PluginAllowance allowance) {
  return std::make_unique<PluginServices>(engine_->services, loop_.get_executor(), names_,
                                          std::move(allowed), allowance);
}

plugins::RequestScope PluginServicesContract::scope_of(
    const std::optional<core::CompanyId>& company) const {
  return {.plugin_id = *plugin_, .plugin_key = plugin_key, .company_id = company};
}

Result<bj::value> PluginServicesContract::ask(PluginServices& services,
                                              const std::optional<core::CompanyId>& company,
                                              const std::string& method, bj::object params) {
  clock_.advance(std::chrono::milliseconds{1});  // rows are ordered by their time
  Result<bj::value> answer = finish(services.answer(scope_of(company), method, std::move(params)));
  EXPECT_WORKS(finish(services.settle()));
  loop_.poll();  // the task that wrote is removed from its group
  return answer;
}

std::vector<core::Activity> PluginServicesContract::trail(const core::CompanyId& company) {
  std::vector<core::Activity> out;
  const auto page = finish(engine_->activities.list(admin(), company, {}, {.limit = 100}));
  for (const core::Activity& entry : page->rows) {
    if (entry.action.starts_with("plugin.") && entry.action != "plugin.config_updated") {
      out.push_back(entry);
    }
  }
  return out;
}

std::vector<core::PluginLogLine> PluginServicesContract::lines(const core::Reach& reach) {
  return *read(
      [&](store::Session& s) { return store::list_plugin_logs(s, *plugin_, reach, {}, 100); });
}

std::vector<std::string> PluginServicesContract::everything_kept() {
  std::vector<std::string> out;
  for (const std::string table :
       {"plugins", "plugin_configs", "plugin_state", "plugin_entities", "plugin_logs", "activity",
        "company_secrets", "company_secret_bindings", "secret_access_events"}) {
    const auto found = read([&](store::Session& s) { return s.run("select * from " + table, {}); });
    EXPECT_TRUE(found) << table;
    for (const auto& row : found->rows) {
      std::string line = table;
      for (const store::Value& value : row) line += " | " + text_of(value);
      out.push_back(std::move(line));
    }
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace berth::engine
