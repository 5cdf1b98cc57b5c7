#pragma once

#include "contract/engine_fixture.hpp"
#include "engine/plugins/plugin_services.hpp"
#include "support/loopback_server.hpp"

namespace berth::engine {

// Names that the test makes up.
class MadeUpNames final : public egress::Resolver {
 public:
  explicit MadeUpNames(std::map<std::string, std::string> known) : known_(std::move(known)) {}
  Task<std::vector<egress::Address>> resolve(std::string name) override {
    if (!known_.contains(name)) co_return fail(Errc::server_unreachable, name + " is unknown");
    co_return std::vector{*egress::Address::parse(known_.at(name))};
  }

 private:
  std::map<std::string, std::string> known_;
};

// The host's side of a plugin over the real engine: two companies that both use the plugin, each
// with an agent, a run and a secret that its plugin config names.
class PluginServicesContract : public EngineContract {
 protected:
  struct Tenant {
    core::CompanyId id;
    core::AgentId agent;
    core::RunId run;
    core::SecretId secret;
  };
  static constexpr const char* plugin_key = "acme.cloud";

  void SetUp() override;
  void TearDown() override;

  // Another host side of the same plugin.
  std::unique_ptr<PluginServices> services(std::vector<egress::Range> allowed,
                                           PluginAllowance allowance = {});
  plugins::RequestScope scope_of(const std::optional<core::CompanyId>& company) const;

  // Asks like the supervisor, once the gate has admitted the request.
  Result<bj::value> ask(PluginServices& services, const std::optional<core::CompanyId>& company,
                        const std::string& method, bj::object params);
  Result<bj::value> ask(const std::optional<core::CompanyId>& company, const std::string& method,
                        bj::object params) {
    return ask(*services_, company, method, std::move(params));
  }
  // Tasks of the services may continue.
  template <class T>
  Result<T> finish(Task<T> task) {
    std::optional<Result<T>> outcome;
    loop_.restart();
    tasks_.start("test", keep(std::move(task), outcome));
    work_until([&] { return outcome && tasks_.size() == 0; });
    return *std::move(outcome);
  }
  void work_until(const std::function<bool()>& is_so) {
    while (!is_so()) {
      // The end of an earlier task, on a thread of the store, may have stopped the loop just now.
      if (loop_.run_one() == 0) loop_.restart();
    }
  }

  bj::object ref_to(const core::SecretId& secret) const {
    return {{"type", "secret_ref"}, {"secretId", secret.str()}};
  }
  std::vector<core::Activity> trail(const core::CompanyId& company);
  std::vector<core::PluginLogLine> lines(const core::Reach& reach);
  // Everything that a plugin can change, row by row.
  std::vector<std::string> everything_kept();

  Tenant tenant(const std::string& name);

  MadeUpNames names_{{{"api.example", "127.0.0.1"}, {"inside.example", "10.1.2.3"}}};
  TaskGroup tasks_{loop_.get_executor()};
  std::optional<core::PluginId> plugin_;
  std::optional<Tenant> acme_;
  std::optional<Tenant> other_;
  std::unique_ptr<PluginServices> services_;
};

}  // namespace berth::engine
