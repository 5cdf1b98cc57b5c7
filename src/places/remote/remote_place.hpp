#pragma once

#include "base/async/task_group.hpp"
#include "core/capability.hpp"
#include "places/place.hpp"
#include "places/remote/terminal.hpp"
#include "places/remote/transport.hpp"
#include "places/sandbox_provider.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::places::remote {

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
  std::optional<std::string> provider_lease_id = {};  // always set for sandbox providers
  // Stored with the lease: the provider's own data under `providerMetadata`. The config and the
  // host's keys are stored beside it, where no provider response can overwrite them.
  bj::object metadata = {};
  std::optional<Time> expires_at = {};
};

// What a provider reports after a lease was released (newer plugins only).
struct Receipt {
  std::string provider_lease_id;
  std::string state;  // "stopped" or "destroyed"
};

// A sandbox that a user prepares by hand.
struct SetupStart {
  std::string session_id;
  std::optional<std::string> source_ref = {};  // the template that it starts from
  std::optional<std::string> source_kind = {};
  Time expires_at = {};
};

// How an environment's config names its plugin.
enum class Addressing {
  provider_key,  // driver `sandbox`: {"provider": KEY, ...}
  plugin_key,    // driver `plugin`: {"pluginKey", "driverKey", "driverConfig"}
};

// Sandboxes of plugins. Every verb looks up its plugin again: the one pinned in the lease's
// metadata, else the one that the config names. Secrets are put into the config for the call only.
class RemotePlace final : public Place, public Commands, public Snapshots, public Logins {
 public:
  RemotePlace(Host& host, Addressing addressing);
  ~RemotePlace() override;

  Task<ProbeReport> probe(const AcquireRequest& request) override;
  // The worker has validated the config: see validate().
  Task<> check_config(const bj::object& config) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  Task<> release(const PlaceRef& lease, core::LeaseEvent how) override;
  Task<> destroy(const PlaceRef& lease) override;
  Task<std::vector<PlaceKey>> held() override;
  // Abandons the commands that still run; they are lost.
  Task<> close() override;
  // The protocol can find a sandbox only by the name that acquire returned.
  Abilities abilities() override {
    return {.commands = this,
            .remote_files = files_.get(),
            .snapshots = this,
            .logins = this,
            .found_by_key = false};
  }

  // The requests of the protocol.
  // Without a company: secrets are ids or newly typed values.
  Task<ConfigVerdict> validate(bj::object config);
  Task<Verdict> verdict_on(const PlaceRef& lease);
  Task<RemoteLease> make_lease(const PlaceRef& lease, AcquireFacts facts = {});
  // Nothing when the sandbox no longer exists, which is not an error.
  Task<std::optional<RemoteLease>> resume(const PlaceRef& lease, std::string provider_lease_id);
  Task<std::optional<Receipt>> release_lease(const PlaceRef& lease);
  Task<std::optional<Receipt>> destroy_lease(const PlaceRef& lease);
  // A lease on a sandbox for a user to work in by hand; release() and destroy() end it as the
  // protocol requires. execution_unsupported unless the manifest declares it and the worker
  // advertises it; so are templates, logins and streams.
  Task<RemoteLease> open_setup(const PlaceRef& lease, SetupStart start);

  // Fails closed: all false when the plugin was removed or no longer declares the driver.
  core::SandboxCapabilities capabilities(const PlaceRef& lease, core::LeasePolicy policy) const;
  // Whether a lease with this config may be resumed: declared, advertised, and requested.
  bool may_reuse(const bj::object& config) const;

  Task<Workspace> realize(const PlaceRef& lease, const std::optional<std::string>& wanted) override;
  Task<Started> start(const PlaceRef& lease, const Command& command) override;
  Task<Ended> follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                     OutputTaker& taker) override;
  Task<> send(const PlaceRef& lease, const std::string& exec_id, Input input) override;
  // The protocol has no message for this. Another command signals the processes that carry the
  // command's mark in their environment. A result that does not come after that is not awaited.
  Task<> cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) override;
  Task<> renew(const PlaceRef& lease, std::int64_t deadline_ms) override;
  // The output is deleted with the lease.
  Task<> forget_output(const PlaceRef& lease, const std::string& exec_id) override;

  Task<CapturedTemplate> capture_template(const PlaceRef& lease,
                                          const CaptureTemplate& request) override;
  // A template whose capture was never answered has no name.
  Task<bool> delete_template(const PlaceRef& place, const DeleteTemplate& request) override;
  // The plugin protocol lacks this.
  Task<Changes> changes(const PlaceRef& lease) override;
  Task<std::vector<core::TemplateId>> held_templates() override;

  Task<SetupAccess> setup_access(const PlaceRef& lease) override;
  // The login of an agent's program in the sandbox, on a terminal; one at a time per plugin. It is
  // closed when the handle is destroyed, and with the lease.
  Task<LiveCommandPtr> open_login(const PlaceRef& lease, LoginCommand command) override;
  // Its two outputs are merged. The sandbox needs sh, mkfifo and base64. The execution_unsupported
  // error names what is missing.
  Task<LiveCommandPtr> open_stream(const PlaceRef& lease, const Command& command,
                                   DuplexBridge bridge) override;

 private:
  friend class SandboxFiles;
  struct Site;
  class Running;
  struct Live;
  class LiveHandle;
  struct Output {
    std::int64_t exit_code = -1;
    std::string out = {};
    std::string err = {};
  };
  // A script for the sandbox's shell; its arguments are "$1" and so on.
  struct SmallCommand {
    std::string script;
    std::vector<std::string> args = {};
    std::string input = {};
    std::chrono::milliseconds time = std::chrono::seconds{60};
    std::string cwd = "/";  // exists whatever happened to the workspace
  };

  Result<DriverPlace> find(const bj::object& config, const bj::object& metadata) const;
  Task<Site> place_of(const PlaceRef& lease) const;
  std::chrono::milliseconds deadline_of(const Site& place) const;
  Task<bj::value> ask(const Site& place, std::string method, bj::object more) const;
  Task<bj::object> ask_object(const PlaceRef& lease, std::string method, bj::object more) const;
  Task<std::optional<Receipt>> give_back(const Site& place, const PlaceRef& lease,
                                         std::string method);
  Task<> cancel_setup(const PlaceRef& lease, std::string reason);
  Task<RemoteLease> lease_from(const Site& place, const PlaceRef& lease, bj::value answer) const;

  // Deletes the command output of the lease.
  Result<> forget(const PlaceRef& lease);
  std::string folder_of(const PlaceRef& lease) const;
  Result<std::string> folder_of(const PlaceRef& lease, const std::string& exec_id) const;
  Task<> execute(std::shared_ptr<Running> running, std::shared_ptr<Supervisor> plugin,
                 PluginCall call);
  Task<Output> run_small(const Site& place, SmallCommand command) const;
  Task<LiveCommandPtr> open_live(const PlaceRef& lease, std::shared_ptr<Supervisor> plugin,
                                 Terminal::Kind kind, std::string route, bj::object params);
  Task<> hold(std::shared_ptr<Live> live, std::shared_ptr<Supervisor> plugin, Terminal::Kind kind,
              bj::object params);
  // Closes what is open in the lease's sandbox before the sandbox is destroyed.
  Task<> end_live(const PlaceRef& lease);
  Task<> signal_marked(const Site& place, const std::string& mark, std::string_view signal) const;
  // Whether the provider starts commands in another folder than the given one. Also false when that
  // cannot be determined. Checked once for each plugin version.
  Task<bool> ignores_cwd(const Site& place);

  Host& host_;
  Addressing addressing_;
  std::map<std::string, std::shared_ptr<Running>> running_;  // by folder
  std::map<std::string, std::shared_ptr<Live>> live_;        // by route
  // By manifest driver: another version of the plugin has another one.
  std::map<std::shared_ptr<const DriverDeclaration>, bool> ignores_cwd_;
  std::unique_ptr<RemoteFiles> files_;
  TaskGroup tasks_;
};

}  // namespace berth::places::remote
