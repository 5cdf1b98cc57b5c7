#include "contract/engine_fixture.hpp"

namespace berth::engine {
void EngineContract::SetUp() {
  StoreContract::SetUp();
  if (IsSkipped()) return;
  folder_ = std::make_unique<store::TemporaryFolder>();
  auto vault = vault::Vault::open({.key = std::nullopt,
                                   .previous_key = std::nullopt,
                                   .file = folder_->path() + "/master.key",
                                   .may_create = true},
                                  random_);
  ASSERT_TRUE(vault) << vault.error().message;
  vault_.emplace(*std::move(vault));
  failing_ = std::make_unique<store::FailingDatabase>(*database_);
  store_ = std::make_unique<store::Store>(*failing_);
  feed_ = std::make_unique<Feed>(loop_.get_executor());
  auto logs = RunLogs::open(folder_->path() + "/runs");
  ASSERT_TRUE(logs) << logs.error().message;
  logs_.emplace(*std::move(logs));
  engine_ = std::make_unique<Engine>(
      Services{*store_, *vault_, clock_, random_, *feed_, core::Allowances::all()},
      Workplace{.places = places_,
                .logs = *logs_,
                .node = {.id = core::NodeId::make(random_, clock_.now()), .name = "test"},
                .executor = loop_.get_executor()});
  list_linux(engine_->catalog);
}

void list_linux(Catalog& catalog) {
  ProviderCapability own = catalog.capabilities().sandbox_providers.at("linux");
  own.supports_run_execution = true;
  own.supports_interactive_setup = true;
  own.interactive_setup_connection_types = {"browser_terminal"};
  own.supports_template_capture = true;
  own.supports_template_delete = true;
  catalog.add("linux", std::move(own));
}

CreateEnvironment EngineContract::ssh(const std::string& name) const {
  return {.name = name,
          .description = std::nullopt,
          .driver = core::DriverKind::ssh,
          .status = std::nullopt,
          .config = bj::object{{"host", "10.0.0.1"},
                               {"username", "work"},
                               {"remoteWorkspacePath", "/srv"},
                               {"privateKey", "the key"}},
          .env_vars = bj::object{{"A", "1"}},
          .metadata = std::nullopt};
}

CreateSecret EngineContract::secret_named(const std::string& name) const {
  return {.name = name,
          .key = std::nullopt,
          .provider = std::nullopt,
          .managed_mode = std::nullopt,
          .value = Secret{"the value of " + name},
          .external_ref = std::nullopt,
          .provider_metadata = std::nullopt,
          .description = std::nullopt};
}

}  // namespace berth::engine
