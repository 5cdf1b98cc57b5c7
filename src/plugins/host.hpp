#pragma once

#include "base/async/task_group.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "core/ids.hpp"
#include "plugins/command.hpp"
#include "plugins/folder_use.hpp"
#include "plugins/given_secrets.hpp"
#include "plugins/services.hpp"
#include "plugins/way_out.hpp"
#include "plugins/worker.hpp"

#include <boost/asio/thread_pool.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace berth::plugins {

class Supervisor;
class LiveOutput;

// The wait doubles with each crash. The count restarts only after a worker was healthy for a while.
struct BackOff {
  std::chrono::milliseconds first{1'000};
  std::chrono::milliseconds longest{300'000};
  int crashes_max = 10;  // one more leads to `error`
  std::chrono::milliseconds healthy_after{60'000};
};

struct HostConfig {
  std::string keeper_program;
  std::string folder;  // for command output of sandboxes; nothing in it has to survive
  // Holds files on their way to and from sandboxes. Each worker can reach its own folders in it, by
  // name.
  std::string exchange_folder = {};
  // Each plugin has its own permanent folder in it. Empty: plugins keep nothing.
  std::string files_folder = {};
  // Folders on this machine that the operator lets every plugin read and write.
  std::vector<std::string> shared_folders = {};
  std::string home = {};  // the server's own folder, which no box shows
  keeper::BoxLevel least_isolation = keeper::BoxLevel::weak;
  WayOut* way_out = nullptr;  // without one, boxes have no network; outlives the host
  // A range of users that nothing else on this machine uses; each plugin gets one. Used when the
  // server is root, because a worker never is.
  uid_t first_user = 61'400;
  uid_t users_max = 200;
  std::int64_t memory_bytes_max = std::int64_t{2} << 30;
  // What a plugin may keep in its own folder. A plugin that keeps more is stopped.
  FolderUse files_max = {.bytes = std::int64_t{1} << 30, .files = 100'000};
  HostEnvironment environment = {};
  InstanceFacts instance = {};
  BackOff back_off = {};
  StopTimes stop_times = {};
  ChannelLimits channel = {};
  std::chrono::milliseconds initialize_deadline{15'000};
  std::chrono::milliseconds ready_wait{5'000};  // of a call, while the worker starts
};

struct InstalledPlugin {
  core::PluginId id;
  Manifest manifest = {};
  Package package = {};
  std::vector<std::string> egress = {};  // rules that allow more than the public internet
};

struct PluginStatus {
  core::PluginId id;
  std::string plugin_key = {};
  WorkerState state = WorkerState::stopped;
  std::string reason = {};  // of `error` and `backing_off`; contains no text from the worker
  std::optional<std::int64_t> pid = {};
  int crashes = 0;
  std::optional<Time> running_since = {};
  std::set<std::string> methods = {};  // advertised by the worker; empty unless running
  keeper::BoxReport box = {};          // of the newest worker
};

struct PluginCall {
  std::string method;
  bj::object params = {};
  std::chrono::milliseconds deadline{30'000};
  // Receives output while `environmentExecute` is open. Must outlive the call.
  LiveOutput* output = nullptr;
  // Holds the secrets among the params.
  GivenSecrets::Hold secrets = {};
};

// Where an environment driver is: its plugin, and the plugin's declaration.
struct DriverPlace {
  core::PluginId plugin_id;
  std::string plugin_key = {};
  std::shared_ptr<const DriverDeclaration> driver = {};  // part of the plugin's manifest
};

// All workers of this server: one process per plugin, restarted when it crashes, and given up with
// a reason when it keeps crashing. One thread.
class Host {
 public:
  // The referenced objects must outlive close().
  Host(asio::any_io_executor executor, HostConfig config, HostServices& services, Clock& clock,
       Random& random);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  // Starts the worker, and returns when it is running and has its configs. On failure the state is
  // `error` and nothing runs. A running plugin is left as it is.
  Task<> start(InstalledPlugin plugin);
  // Sets the egress rules of the plugin's next workers.
  void allow(const core::PluginId& id, std::vector<std::string> rules) const;
  // Removes the plugin's own folder. The plugin must be stopped.
  Result<> forget(const core::PluginId& id) const;
  // Ends the worker and forgets the plugin. Succeeds if there is no such plugin.
  Task<> stop(core::PluginId id);
  Task<> close();

  std::vector<PluginStatus> list() const;
  std::optional<PluginStatus> status(const core::PluginId& id) const;
  const Manifest* manifest(const core::PluginId& id) const;

  // Waits briefly for a worker that is starting. Fails with plugin_not_ready or plugin_not_found.
  Task<> ready(core::PluginId id);
  // Attaches the scope of `params.companyId`. Fails with CallFailure::gone when there is no worker.
  asio::awaitable<CallResult> call(core::PluginId id, PluginCall call);
  // Sends a notification on behalf of the company, under which the worker may send requests for a
  // while. False when no worker runs, or when it does not listen.
  bool tell(const core::PluginId& id, std::string_view method, const bj::object& params,
            const core::CompanyId& company);
  Task<bj::object> health(core::PluginId id);
  // Removes secrets from the worker's text before users see it.
  std::string cleaned(const core::PluginId& id, std::string_view text) const;
  // Records that the company has a config, and sends it to the worker. -32006 is only logged.
  Task<> config_changed(core::PluginId id, core::CompanyId company, bj::object config);

  // The first plugin, in start order, that declares the sandbox provider; one with a running worker
  // is preferred. Fails with provider_unavailable when there is none.
  Result<DriverPlace> find_provider(std::string_view driver_key) const;
  // By plugin key; any kind of driver. Fails with plugin_not_found.
  Result<DriverPlace> find_driver(std::string_view plugin_key, std::string_view driver_key) const;
  // A driver of one plugin. Fails with plugin_not_found when the plugin was removed or no longer
  // declares the driver.
  Result<DriverPlace> find_driver(const core::PluginId& id, std::string_view driver_key) const;

  const HostConfig& config() const { return config_; }
  // Nothing when the plugin was not started, or was stopped.
  std::shared_ptr<Supervisor> find(const core::PluginId& id) const;
  // Byte streams that are open with any worker.
  std::size_t open_streams() const;
  asio::any_io_executor executor() const { return executor_; }
  Clock& clock() const { return clock_; }
  Random& random() const { return random_; }

 private:
  // Measures all workers' folders periodically, as long as there are workers.
  Task<> watch_folders();
  Task<> look_at_folders();
  Result<std::optional<WorkerUser>> choose_user(const core::PluginId& id) const;
  Result<DriverPlace> place_of(const std::shared_ptr<Supervisor>& plugin,
                               std::string_view driver_key) const;

  asio::any_io_executor executor_;
  HostConfig config_;
  HostServices& services_;
  Clock& clock_;
  Random& random_;
  std::vector<std::shared_ptr<Supervisor>> plugins_;  // in order of start
  asio::thread_pool lookers_{1};
  // Whether a task watches the folders; an abandoned task outlives the host.
  std::shared_ptr<bool> watching_ = std::make_shared<bool>(false);
  TaskGroup tasks_;
};

}  // namespace berth::plugins
