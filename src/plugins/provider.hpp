#pragma once

#include "base/task_group.hpp"
#include "core/capability.hpp"
#include "execution/execution.hpp"
#include "plugins/host.hpp"
#include "providers/provider.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::plugins {

struct ConfigVerdict {
  bool ok = false;
  std::vector<std::string> errors = {};
  std::vector<std::string> warnings = {};
  std::optional<bj::object> normalized = {};
};

struct AcquireFacts {
  std::optional<std::string> workspace_mode = {};
  std::optional<std::string> requested_cwd = {};
  std::optional<core::AgentId> agent_id = {};
  std::optional<core::WorkspaceId> execution_workspace_id = {};
  std::optional<std::string> adapter_type = {};
  std::optional<Time> requested_expires_at = {};
};

struct RemoteLease {
  std::string provider_lease_id;
  // What is stored with the lease: the provider's own under `providerMetadata`, and flat beside it
  // the config and the keys of the host, which no answer of a provider can overwrite.
  bj::object metadata = {};
  std::optional<Time> expires_at = {};
};

// What a provider says it did when a lease was given back (newer plugins only).
struct Receipt {
  std::string provider_lease_id;
  std::string state;  // "stopped" or "destroyed"
};

struct SyncFile {
  std::string source_path;
  std::string target_path;
  bool is_folder = false;
  std::optional<int> mode = {};
  std::vector<std::string> exclude = {};
  bool follow_symlinks = false;
};
struct SyncCommand {
  std::string command;
  std::optional<std::string> cwd = {};
  std::optional<std::int64_t> timeout_ms = {};
};
struct SyncOperation {
  std::string operation_id;
  std::vector<SyncFile> files = {};
  std::vector<SyncCommand> after = {};
};
struct Synced {
  std::int64_t files = 0;
  std::int64_t bytes = 0;
};

struct Template {
  std::string ref;
  std::string kind;
  bj::object metadata = {};
};

// How the config of an environment names its plugin.
enum class Addressing {
  provider_key,  // driver `sandbox`: {"provider": KEY, ...}
  plugin_key,    // driver `plugin`: {"pluginKey", "driverKey", "driverConfig"}
};

class ExecSpool;

// Sandboxes of plugins. Every verb finds its plugin anew: the one that is pinned in the lease's
// metadata, else the one that the config names. Secrets are put into the config for the call only.
class RemoteProvider final : public execution::Execution {
 public:
  RemoteProvider(Host& host, Addressing addressing);
  ~RemoteProvider() override;

  // Without a company: secrets are ids or what somebody has just typed.
  Task<ConfigVerdict> validate(bj::object config);
  Task<providers::Verdict> probe(const execution::LeaseFacts& lease);

  Task<RemoteLease> acquire(const execution::LeaseFacts& lease, AcquireFacts facts = {});
  // Nothing when the sandbox is gone, which is no error.
  Task<std::optional<RemoteLease>> resume(const execution::LeaseFacts& lease,
                                          std::string provider_lease_id);
  Task<std::optional<Receipt>> release(const execution::LeaseFacts& lease);
  Task<std::optional<Receipt>> destroy(const execution::LeaseFacts& lease);

  // Fails closed: all false when the plugin is gone or has forgotten the driver.
  core::SandboxCapabilities capabilities(const execution::LeaseFacts& lease,
                                         core::LeasePolicy policy) const;
  // Whether a lease of this config may be resumed: declared, advertised, and asked for.
  bool may_reuse(const bj::object& config) const;

  Task<execution::Workspace> realize(const execution::LeaseFacts& lease,
                                     const std::optional<std::string>& wanted) override;
  Task<execution::Started> start(const execution::LeaseFacts& lease,
                                 const execution::Command& command) override;
  Task<execution::Ended> follow(const execution::LeaseFacts& lease, const std::string& exec_id,
                                std::uint64_t offset, execution::OutputTaker& taker) override;
  Task<> send(const execution::LeaseFacts& lease, const std::string& exec_id,
              execution::Input input) override;
  Task<> cancel(const execution::LeaseFacts& lease, const std::string& exec_id,
                std::int64_t grace_ms) override;
  Task<> renew(const execution::LeaseFacts& lease, std::int64_t deadline_ms) override;

  // By the plugin's own way where it has both directions, else with commands in the sandbox.
  Task<Synced> sync_in(const execution::LeaseFacts& lease, std::vector<SyncOperation> operations);
  Task<Synced> sync_out(const execution::LeaseFacts& lease, std::vector<SyncOperation> operations);

  // Interactive setup and templates: results as the plugin gives them.
  Task<bj::object> start_setup(const execution::LeaseFacts& lease, bj::object request);
  Task<bj::object> read_setup(const execution::LeaseFacts& lease, bj::object request);
  Task<bj::object> cancel_setup(const execution::LeaseFacts& lease, bj::object request);
  Task<Template> capture_template(const execution::LeaseFacts& lease, bj::object request);
  Task<bool> delete_template(const execution::LeaseFacts& lease, Template which,
                             std::optional<std::string> reason);

  // Waits for the commands that still run to be given up.
  Task<> close();

 private:
  struct Place;
  struct Running;

  Result<DriverPlace> find(const bj::object& config, const bj::object& metadata) const;
  Result<Place> place_of(const execution::LeaseFacts& lease) const;

  Host& host_;
  Addressing addressing_;
  std::map<std::string, std::shared_ptr<Running>> running_;  // by lease and exec id
  TaskGroup tasks_;
};

}  // namespace berth::plugins
