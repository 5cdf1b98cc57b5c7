#pragma once

#include "places/place.hpp"

namespace berth::plugins {
class RemoteProvider;
}

namespace berth::drivers {

// Environments that a plugin provides: those with the driver `plugin`, and those with the driver
// `sandbox` whose provider is not built in. Without plugins every operation, even release, is
// refused, and the refusal names the plugin that the config needs; a probe reports it.
class Plugin final : public Driver {
 public:
  Plugin() = default;
  // The provider must outlive this object.
  Plugin(plugins::RemoteProvider& remote, core::DriverKind kind) : remote_(&remote), kind_(kind) {}

  Task<ProbeReport> probe(const AcquireRequest& request) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  // The protocol can find a sandbox only by the name that acquire returned.
  bool finds_by_key(const bj::object& /*config*/) const override { return false; }
  Task<Workspace> realize(const PlaceRef& lease, const std::optional<std::string>& wanted) override;
  Task<Started> start(const PlaceRef& lease, const Command& command) override;
  Task<Ended> follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                     OutputTaker& taker) override;
  Task<> send(const PlaceRef& lease, const std::string& exec_id, Input input) override;
  Task<> cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) override;
  Task<> renew(const PlaceRef& lease, std::int64_t deadline_ms) override;
  execution::RemoteFiles* remote_files(const PlaceRef& lease) override;
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
  // The plugin protocol lacks these. freeze() is refused; thaw() does nothing.
  Task<execution::Changes> changes(const PlaceRef& lease) override;
  Task<> freeze(const PlaceRef& lease) override;
  Task<> thaw(const PlaceRef& lease) override;
  Task<> close() override;

 private:
  plugins::RemoteProvider* remote_ = nullptr;
  core::DriverKind kind_ = core::DriverKind::plugin;
};

}  // namespace berth::drivers
