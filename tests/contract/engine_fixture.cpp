#include "contract/engine_fixture.hpp"

namespace berth::engine {
namespace {

class FailingSession final : public store::Session {
 public:
  FailingSession(store::Session& real, int fail_at, int& statements)
      : real_(real), fail_at_(fail_at), statements_(statements) {}

  Result<store::Rows> run(std::string_view sql, std::span<const store::Value> values) override {
    if (++statements_ == fail_at_) return fail(Errc::store_full, "the disk is full");
    return real_.run(sql, values);
  }

 private:
  store::Session& real_;
  int fail_at_;
  int& statements_;
};

}  // namespace

void FailingDatabase::write(Work work, Done done) {
  Work watched = [this, work = std::move(work)](store::Session& session) mutable {
    statements_ = 0;
    FailingSession failing{session, fail_at_, statements_};
    return work(failing);
  };
  real_.write(std::move(watched), std::move(done));
}

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
  failing_ = std::make_unique<FailingDatabase>(*database_);
  store_ = std::make_unique<store::Store>(*failing_);
  feed_ = std::make_unique<Feed>(loop_.get_executor());
  engine_ = std::make_unique<Engine>(Means{*store_, *vault_, clock_, random_, *feed_});
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
