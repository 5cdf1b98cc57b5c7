#pragma once

#include "base/async/task.hpp"
#include "keeper/plugin_worker/plugin_box.hpp"
#include "plugins/host.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>

namespace berth::plugins {

// The plugin's own folder, which is kept from one worker to the next.
std::string files_folder_of(const HostConfig& config, const core::PluginId& id);
// Holds the plugin's files on their way to and from sandboxes.
std::string exchange_folder_of(const HostConfig& config, const core::PluginId& id);

// The user that owns the plugin's folder, if it exists. A plugin keeps its user.
std::optional<WorkerUser> former_user(const HostConfig& config, const core::PluginId& id);
// Users that own a plugin's folder, whether the plugin is running or not.
std::set<uid_t> users_of_folders(const HostConfig& config);

// What a plugin's worker can see. Creates the worker's own folders.
Result<keeper::PluginBox> box_of(const HostConfig& config, const InstalledPlugin& plugin,
                                 const std::optional<WorkerUser>& user,
                                 const WorkerCommand& command);
// What a program that only prints a manifest can see: the package, and no network.
keeper::PluginBox reading_box(const WorkerCommand& command, const Package& package);

// The keeper's report about the box it made. Fails with the keeper's reason if it made none.
Task<keeper::BoxArrivals> read_box_report(asio::any_io_executor executor, Fd report,
                                          std::chrono::milliseconds deadline);

}  // namespace berth::plugins
