#pragma once

#include "drivers/driver.hpp"
#include "providers/built_in.hpp"

namespace berth::drivers {

// Sandboxes of providers. The verbs of commands go to the provider of the lease; one that cannot
// execute is refused them.
class Sandbox final : public Driver {
 public:
  // `plugins` has all providers that are not built in; without it there are none.
  explicit Sandbox(const providers::BuiltInProviders& providers, Driver* plugins = nullptr)
      : providers_(providers), plugins_(plugins) {}

  Task<ProbeReport> probe(const AcquireRequest& request) override;
  // Those of plugins have had the word of their worker.
  Task<> check_config(const bj::object& config) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  bool finds_by_key(const bj::object& config) const override;
  bool stays_on_its_server(const bj::object& config) const override;
  Task<Workspace> realize(const PlaceRef& lease, const std::optional<std::string>& wanted) override;
  Task<Started> start(const PlaceRef& lease, const Command& command) override;
  Task<Ended> follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                     OutputTaker& taker) override;
  Task<> send(const PlaceRef& lease, const std::string& exec_id, Input input) override;
  Task<> cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) override;
  Task<> renew(const PlaceRef& lease, std::int64_t deadline_ms) override;
  Task<> forget_output(const PlaceRef& lease, const std::string& exec_id) override;
  Task<execution::Usage> usage(const PlaceRef& lease) override;
  Task<std::vector<std::uint16_t>> listening(const PlaceRef& lease) override;
  Task<execution::FileRoot> files(const PlaceRef& lease) override;
  execution::RemoteFiles* remote_files(const PlaceRef& lease) override;
  Task<Fd> dial(const PlaceRef& lease, std::uint16_t port) override;
  Task<> set_egress(const PlaceRef& lease, core::LinuxEgress policy) override;
  Task<execution::EgressPage> egress_log(const PlaceRef& lease, std::uint64_t offset) override;
  Task<> release(const PlaceRef& lease, core::LeaseEvent how) override;
  Task<> destroy(const PlaceRef& lease) override;

  Task<execution::CapturedTemplate> capture_template(
      const PlaceRef& lease, const execution::CaptureTemplate& request) override;
  Task<bool> delete_template(const PlaceRef& place,
                             const execution::DeleteTemplate& request) override;
  Task<std::optional<SetupAccess>> setup_access(const PlaceRef& lease) override;
  Task<execution::LiveCommandPtr> open_login(const PlaceRef& lease,
                                             execution::LoginCommand command) override;
  Task<execution::LiveCommandPtr> open_stream(const PlaceRef& lease, const Command& command,
                                              execution::DuplexBridge bridge) override;
  Task<execution::Changes> changes(const PlaceRef& lease) override;
  Task<> freeze(const PlaceRef& lease) override;
  Task<> thaw(const PlaceRef& lease) override;

  Task<> close() override { return providers_.close(); }
  Task<std::vector<HeldSandbox>> held_sandboxes() override { return providers_.held(); }
  Task<std::vector<execution::HeldTemplate>> held_templates() override {
    return providers_.held_templates();
  }

 private:
  // What the lease was made with: its metadata first, because the config of its environment may be
  // another by now.
  bj::object config_of(const PlaceRef& lease) const;
  // Who has the sandboxes of a provider that is not built in; nothing for one that is.
  Driver* plugin_of(const PlaceRef& lease) const;
  // Who executes in the lease's sandbox; an error when its provider cannot.
  Result<execution::Execution*> execution_of(const PlaceRef& lease) const;

  const providers::BuiltInProviders& providers_;
  Driver* plugins_;
};

}  // namespace berth::drivers
