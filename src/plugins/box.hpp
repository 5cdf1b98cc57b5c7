#pragma once

#include "base/async/task.hpp"
#include "keeper/plugin_worker/plugin_box.hpp"
#include "plugins/host.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>

namespace berth::plugins {

// The folder that is a plugin's own, and is kept from one worker to the next.
std::string files_folder_of(const HostConfig& config, const core::PluginId& id);
// Where its files are on their way to and from sandboxes.
std::string exchange_folder_of(const HostConfig& config, const core::PluginId& id);

// The user that owns the plugin's folder, where it has one. Its files stay its own.
std::optional<WorkerUser> former_user(const HostConfig& config, const core::PluginId& id);
// Users that own the folder of some plugin, running or not.
std::set<uid_t> users_of_folders(const HostConfig& config);

// What the worker of a plugin may see. Makes the folders that are its own.
Result<keeper::PluginBox> box_of(const HostConfig& config, const InstalledPlugin& plugin,
                                 const std::optional<WorkerUser>& user,
                                 const WorkerCommand& command);
// What a program sees that only prints a manifest: the package, and no network.
keeper::PluginBox reading_box(const WorkerCommand& command, const Package& package);

// What the keeper reports about the box that it made; fails with its reason where it made none.
Task<keeper::BoxArrivals> read_box_report(asio::any_io_executor executor, Fd report,
                                          std::chrono::milliseconds deadline);

}  // namespace berth::plugins
