#pragma once

#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "core/ids.hpp"
#include "keeper/plugin_worker/plugin_box.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace berth::plugins {

// The only network access of workers' boxes. The program implements it with a proxy, so that
// plugins need not know what is behind it. One thread.
class WayOut {
 public:
  virtual ~WayOut() = default;

  // The ports that workers connect to. If empty, there is no network access.
  virtual std::vector<std::uint16_t> ports() const = 0;

  struct Request {
    core::PluginId plugin;
    std::vector<std::string> allow = {};  // egress rules in addition to what every plugin may reach
    keeper::PluginSockets sockets = {};
  };
  // Serves the sockets of a new box. Connections of the plugin's older box are closed first.
  virtual Result<> open(Request request) = 0;
  // Sets new rules; connections that they no longer allow are cut.
  virtual Result<> change(const core::PluginId& plugin, std::vector<std::string> allow) = 0;
  // Returns when the plugin has nothing open. Succeeds if there is no such plugin.
  virtual Task<> close(core::PluginId plugin) = 0;
  // The newest egress decisions about the plugin, oldest first. Includes workers that have ended,
  // but nothing from before the server started.
  virtual std::vector<bj::object> decisions(const core::PluginId& plugin,
                                            std::size_t count) const = 0;
};

}  // namespace berth::plugins
