#include "plugins/host.hpp"

#include "base/async/offload.hpp"
#include "base/disk_room.hpp"
#include "base/json/peek.hpp"
#include "base/remove_tree.hpp"
#include "plugins/box.hpp"
#include "plugins/supervisor.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unistd.h>

#include <algorithm>

namespace berth::plugins {
namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 2s;
// What any plugin may keep on a full disk.
constexpr std::int64_t spared_bytes = std::int64_t{16} << 20;

std::unexpected<Error> not_found(const std::string& what) {
  return fail(Errc::plugin_not_found, "plugin " + what + " is not there, or not enabled",
              "`berth plugin list` shows the plugins of this server");
}

}  // namespace

Host::Host(asio::any_io_executor executor, HostConfig config, HostServices& services, Clock& clock,
           Random& random)
    : executor_(std::move(executor)),
      config_(std::move(config)),
      services_(services),
      clock_(clock),
      random_(random),
      tasks_(executor_) {}

Host::~Host() = default;

std::shared_ptr<Supervisor> Host::find(const core::PluginId& id) const {
  const auto found =
      std::ranges::find_if(plugins_, [&](const auto& plugin) { return plugin->plugin().id == id; });
  return found == plugins_.end() ? nullptr : *found;
}

// The plugin's former user, which owns its files; else the lowest user that no plugin has.
Result<std::optional<WorkerUser>> Host::choose_user(const core::PluginId& id) const {
  if (::geteuid() != 0) return std::optional<WorkerUser>{};
  const auto is_taken = [&](uid_t uid) {
    return std::ranges::any_of(
        plugins_, [&](const auto& plugin) { return plugin->user() && plugin->user()->uid == uid; });
  };
  const std::optional<WorkerUser> former = former_user(config_, id);
  if (former && !is_taken(former->uid)) return former;
  const std::set<uid_t> owners = users_of_folders(config_);
  for (uid_t uid = config_.first_user; uid < config_.first_user + config_.users_max; ++uid) {
    if (!is_taken(uid) && !owners.contains(uid)) return WorkerUser{.uid = uid, .gid = uid};
  }
  return fail(Errc::overloaded, "there is no user left for another plugin",
              "uninstall plugins that are not used: berth plugin uninstall KEY --purge");
}

void Host::allow(const core::PluginId& id, std::vector<std::string> rules) const {
  if (const std::shared_ptr<Supervisor> plugin = find(id)) plugin->allow(std::move(rules));
}

Result<> Host::forget(const core::PluginId& id) const {
  if (config_.files_folder.empty()) return {};
  return remove_tree(files_folder_of(config_, id));
}

Task<> Host::start(InstalledPlugin plugin) {
  if (const std::shared_ptr<Supervisor> old = find(plugin.id)) {
    if (old->is_running()) co_return Result<>{};
    if (old->status().state != WorkerState::error) co_return co_await old->ready();
    const core::PluginId id = plugin.id;
    BERTH_CO_DO(co_await stop(id));
  }
  BERTH_CO_TRY(const std::optional<WorkerUser> user, choose_user(plugin.id));
  const auto made = std::make_shared<Supervisor>(executor_, config_, services_, clock_, random_,
                                                 std::move(plugin), user);
  plugins_.push_back(made);
  const bool has_folders = !config_.files_folder.empty();
  if (has_folders && !std::exchange(*watching_, true)) {
    tasks_.start("plugin.folders", watch_folders());
  }
  co_return co_await made->start();
}

Task<> Host::stop(core::PluginId id) {
  const std::shared_ptr<Supervisor> plugin = find(id);
  if (!plugin) co_return Result<>{};
  const Result<> stopped = co_await plugin->stop();
  std::erase(plugins_, plugin);
  co_return stopped;
}

Task<> Host::close() {
  Result<> outcome;
  while (!plugins_.empty()) {
    const core::PluginId id = plugins_.back()->plugin().id;
    Result<> stopped = co_await stop(id);
    if (outcome) outcome = std::move(stopped);
  }
  BERTH_CO_DO(co_await tasks_.stop());
  co_return outcome;
}

// The folders are on the disk of the home folder. A file system quota would be better, but no
// Debian file system limits a folder unless it was created with that option.
Task<> Host::watch_folders() {
  const struct Over {
    std::shared_ptr<bool> flag;
    ~Over() { *flag = false; }
  } over{watching_};
  asio::steady_timer timer{executor_};
  while (!plugins_.empty()) {
    const auto began = std::chrono::steady_clock::now();
    BERTH_CO_DO(co_await look_at_folders());
    const auto took = std::chrono::steady_clock::now() - began;
    timer.expires_after(std::max<std::chrono::steady_clock::duration>(look_every, 20 * took));
    const auto [error] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error) co_return fail(Errc::cancelled, "the host is closed");
  }
  co_return Result<>{};
}

Task<> Host::look_at_folders() {
  const bool is_full = !room_on_disk(config_.files_folder).value_or(DiskRoom{}).keeps_output();
  const std::vector<std::shared_ptr<Supervisor>> now = plugins_;
  for (const std::shared_ptr<Supervisor>& plugin : now) {
    if (!plugin->is_running()) continue;
    const std::string folder = files_folder_of(config_, plugin->plugin().id);
    // On a disk that is down to its reserve, plugins that hold much of it are stopped.
    FolderUse most = config_.files_max;
    if (is_full) most.bytes = std::min(most.bytes > 0 ? most.bytes : spared_bytes, spared_bytes);
    const Result<FolderUse> use =
        co_await offload(lookers_, [folder, most] { return measure_folder(folder, most); });
    const std::optional<std::string> why = why_too_much(use, most);
    if (!why) continue;
    plugin->expel("the worker was stopped, because " + *why +
                  (is_full ? " and the disk of the server is down to its reserve" : "") +
                  "; remedy: remove files from " + folder +
                  " or raise plugin_files_mb, and enable the plugin again");
  }
  co_return Result<>{};
}

std::vector<PluginStatus> Host::list() const {
  std::vector<PluginStatus> all;
  for (const auto& plugin : plugins_) all.push_back(plugin->status());
  return all;
}

std::optional<PluginStatus> Host::status(const core::PluginId& id) const {
  const std::shared_ptr<Supervisor> plugin = find(id);
  return plugin ? std::optional{plugin->status()} : std::nullopt;
}

const Manifest* Host::manifest(const core::PluginId& id) const {
  const std::shared_ptr<Supervisor> plugin = find(id);
  return plugin ? &plugin->plugin().manifest : nullptr;
}

Task<> Host::ready(core::PluginId id) {
  const std::shared_ptr<Supervisor> plugin = find(id);
  if (!plugin) co_return not_found(id.str());
  co_return co_await plugin->ready();
}

asio::awaitable<CallResult> Host::call(core::PluginId id, PluginCall call) {
  const std::shared_ptr<Supervisor> plugin = find(id);
  if (plugin) co_return co_await plugin->call(std::move(call));
  co_return std::unexpected(CallFailure{CallFailure::Cause::gone, rpc_code::worker_unavailable,
                                        "plugin " + id.str() + " is not there"});
}

bool Host::tell(const core::PluginId& id, std::string_view method, const bj::object& params,
                const core::CompanyId& company) {
  const std::shared_ptr<Supervisor> plugin = find(id);
  return plugin && plugin->tell(method, params, company);
}

std::string Host::cleaned(const core::PluginId& id, std::string_view text) const {
  const std::shared_ptr<Supervisor> plugin = find(id);
  return plugin ? plugin->given().clean(text) : std::string{text};
}

Task<bj::object> Host::health(core::PluginId id) {
  PluginCall asked{.method = "health"};
  CallResult answer = co_await call(std::move(id), std::move(asked));
  if (!answer) {
    // A worker that does not implement the health check is healthy as long as it answers.
    const bool silent = answer.error().code == rpc_code::not_implemented ||
                        answer.error().code == rpc_code::method_not_found;
    if (silent) co_return bj::object{{"status", "ok"}};
    co_return std::unexpected(to_error(answer.error(), "health"));
  }
  if (answer->is_object()) co_return std::move(answer->get_object());
  co_return fail(Errc::plugin_protocol, "health: the answer is not an object");
}

Task<> Host::config_changed(core::PluginId id, core::CompanyId company, bj::object config) {
  const std::shared_ptr<Supervisor> plugin = find(id);
  if (!plugin) co_return Result<>{};
  co_return co_await plugin->config_changed(std::move(company), std::move(config));
}

std::size_t Host::open_streams() const {
  std::size_t count = 0;
  for (const auto& plugin : plugins_) count += plugin->streams().duplex_count();
  return count;
}

Result<DriverPlace> Host::place_of(const std::shared_ptr<Supervisor>& plugin,
                                   std::string_view driver_key) const {
  const Manifest& manifest = plugin->plugin().manifest;
  const DriverDeclaration* driver = manifest.find_driver(driver_key);
  if (driver == nullptr) {
    return fail(Errc::plugin_not_found,
                "plugin " + manifest.id + " has no environment driver " + in_quotes(driver_key));
  }
  return DriverPlace{.plugin_id = plugin->plugin().id,
                     .plugin_key = manifest.id,
                     .driver = std::shared_ptr<const DriverDeclaration>{plugin, driver}};
}

Result<DriverPlace> Host::find_provider(std::string_view driver_key) const {
  std::shared_ptr<Supervisor> best;
  for (const auto& plugin : plugins_) {
    const DriverDeclaration* driver = plugin->plugin().manifest.find_driver(driver_key);
    if (driver == nullptr || driver->kind != DriverRole::sandbox_provider) continue;
    if (best == nullptr || (!best->is_running() && plugin->is_running())) best = plugin;
  }
  if (best != nullptr) return place_of(best, driver_key);
  return fail(Errc::provider_unavailable,
              "Sandbox provider \"" + std::string{driver_key} +
                  "\" is not installed or its plugin worker is not running.",
              "install and enable the plugin that has this provider, or choose another one");
}

Result<DriverPlace> Host::find_driver(std::string_view plugin_key,
                                      std::string_view driver_key) const {
  for (const auto& plugin : plugins_) {
    if (plugin->plugin().manifest.id == plugin_key) return place_of(plugin, driver_key);
  }
  return not_found(in_quotes(plugin_key));
}

Result<DriverPlace> Host::find_driver(const core::PluginId& id, std::string_view driver_key) const {
  const std::shared_ptr<Supervisor> plugin = find(id);
  if (!plugin) return not_found(id.str());
  return place_of(plugin, driver_key);
}

}  // namespace berth::plugins
