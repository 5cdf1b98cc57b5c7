#pragma once

#include "places/place.hpp"
#include "places/built_in.hpp"

namespace berth::drivers {

// Providers' sandboxes. Command operations go to the lease's provider, and are refused if it cannot
// execute.
class Sandbox final : public Driver {
 public:
  // `plugins` handles all providers that are not built in; without it there are none.
  explicit Sandbox(const providers::BuiltInProviders& providers, Driver* plugins = nullptr)
      : providers_(providers), plugins_(plugins) {}

  Task<ProbeReport> probe(const AcquireRequest& request) override;
  // Plugin configs were already validated by their worker.
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
  // What the lease was made with: its metadata takes precedence, because its environment's config
  // may have changed.
  bj::object config_of(const PlaceRef& lease) const;
  // The driver for a provider that is not built in; nullptr for a built-in one.
  Driver* plugin_of(const PlaceRef& lease) const;
  // What executes in the lease's sandbox; an error if its provider cannot.
  Result<execution::Execution*> execution_of(const PlaceRef& lease) const;

  const providers::BuiltInProviders& providers_;
  Driver* plugins_;
};

}  // namespace berth::drivers
