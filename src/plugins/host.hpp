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

// After a crash: the wait doubles with each one, and the count begins anew only after a worker was
// healthy for a while.
struct BackOff {
  std::chrono::milliseconds first{1'000};
  std::chrono::milliseconds longest{300'000};
  int crashes_max = 10;  // one more ends in `error`
  std::chrono::milliseconds healthy_after{60'000};
};

struct HostConfig {
  std::string keeper_program;
  std::string folder;  // for what commands in sandboxes say, and nothing that must survive
  // Where files are on their way to and from sandboxes. Workers get at the folders in it that are
  // theirs, by name.
  std::string exchange_folder = {};
  // Each plugin has a folder in it that is its own, and is kept. Empty: plugins keep nothing.
  std::string files_folder = {};
  // Folders of this machine that every plugin may read and write, by the operator's choice.
  std::vector<std::string> shared_folders = {};
  std::string home = {};  // the server's own folder, which no box shows
  keeper::BoxLevel least_isolation = keeper::BoxLevel::weak;
  WayOut* way_out = nullptr;  // without one, boxes have no network; outlives the host
  // A range of users that are nobody else's, from which each plugin gets one. Used when the server
  // is root; a worker never is.
  uid_t first_user = 61'400;
  uid_t users_max = 200;
  std::int64_t memory_bytes_max = std::int64_t{2} << 30;
  // What a plugin may keep in its own folder. One that keeps more is stopped.
  FolderUse files_max = {.bytes = std::int64_t{1} << 30, .files = 100'000};
  HostEnvironment environment = {};
  InstanceFacts instance = {};
  BackOff back_off = {};
  StopTimes stop_times = {};
  ChannelLimits channel = {};
  std::chrono::milliseconds initialize_deadline{15'000};
  std::chrono::milliseconds ready_wait{5'000};  // of a call, for a worker that is starting
};

struct InstalledPlugin {
  core::PluginId id;
  Manifest manifest = {};
  Package package = {};
  std::vector<std::string> egress = {};  // rules that open more than the public internet
};

struct PluginStatus {
  core::PluginId id;
  std::string plugin_key = {};
  WorkerState state = WorkerState::stopped;
  std::string reason = {};  // of `error` and `backing_off`; nothing of it is the worker's
  std::optional<std::int64_t> pid = {};
  int crashes = 0;
  std::optional<Time> running_since = {};
  std::set<std::string> methods = {};  // that the worker advertises; empty unless running
  keeper::BoxReport box = {};          // of the newest worker
};

struct PluginCall {
  std::string method;
  bj::object params = {};
  std::chrono::milliseconds deadline{30'000};
  // Output while `environmentExecute` is open. Must outlive the call.
  LiveOutput* output = nullptr;
  // Of the secrets among the params.
  GivenSecrets::Hold secrets = {};
};

// Where a driver of an environment is: which plugin, and what it says of it.
struct DriverPlace {
  core::PluginId plugin_id;
  std::string plugin_key = {};
  std::shared_ptr<const DriverDeclaration> driver = {};  // part of the plugin's manifest
};

// All workers of this server: one process per plugin, started again when it crashes, and given up
// with a reason when it goes on crashing. One thread.
class Host {
 public:
  // What is referred to must outlive close().
  Host(asio::any_io_executor executor, HostConfig config, HostServices& services, Clock& clock,
       Random& random);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  // Starts the worker; returns when it is running and has its configs, or with why it is not, and
  // then its state is `error` and nothing runs. A plugin that runs already is left as it is.
  Task<> start(InstalledPlugin plugin);
  // The egress rules of the plugin's next workers.
  void allow(const core::PluginId& id, std::vector<std::string> rules) const;
  // Removes the folder that is the plugin's own. The plugin was stopped before.
  Result<> forget(const core::PluginId& id) const;
  // Ends the worker and forgets the plugin. One that is not there is fine.
  Task<> stop(core::PluginId id);
  Task<> close();

  std::vector<PluginStatus> list() const;
  std::optional<PluginStatus> status(const core::PluginId& id) const;
  const Manifest* manifest(const core::PluginId& id) const;

  // Waits a little for a worker that is starting; else plugin_not_ready, plugin_not_found.
  Task<> ready(core::PluginId id);
  // Attaches the scope of `params.companyId`. CallFailure::gone when there is no worker.
  asio::awaitable<CallResult> call(core::PluginId id, PluginCall call);
  // A notification on behalf of the company, under which the worker may ask for a while. False when
  // nobody runs that could hear it, or it does not listen.
  bool tell(const core::PluginId& id, std::string_view method, const bj::object& params,
            const core::CompanyId& company);
  Task<bj::object> health(core::PluginId id);
  // What its worker said in an answer, on its way to people.
  std::string cleaned(const core::PluginId& id, std::string_view text) const;
  // Remembers that the company has a config, and tells the worker. -32006 is only logged.
  Task<> config_changed(core::PluginId id, core::CompanyId company, bj::object config);

  // The first plugin, in order of its start, that declares the sandbox provider; one whose worker
  // runs is preferred. provider_unavailable when there is none.
  Result<DriverPlace> find_provider(std::string_view driver_key) const;
  // By plugin key; any kind of driver. plugin_not_found.
  Result<DriverPlace> find_driver(std::string_view plugin_key, std::string_view driver_key) const;
  // Of one plugin. plugin_not_found when it is gone or does not declare the driver any more.
  Result<DriverPlace> find_driver(const core::PluginId& id, std::string_view driver_key) const;

  const HostConfig& config() const { return config_; }
  // Nothing when the plugin was not started, or was stopped.
  std::shared_ptr<Supervisor> find(const core::PluginId& id) const;
  // Byte streams that are open with any of the workers.
  std::size_t open_streams() const;
  asio::any_io_executor executor() const { return executor_; }
  Clock& clock() const { return clock_; }
  Random& random() const { return random_; }

 private:
  // Looks at the folders of all workers from time to time, as long as there are workers.
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
  // Whether somebody looks at the folders; a task that is abandoned outlives the host.
  std::shared_ptr<bool> watching_ = std::make_shared<bool>(false);
  TaskGroup tasks_;
};

}  // namespace berth::plugins
