#pragma once

#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "core/ids.hpp"
#include "keeper/plugin_worker/plugin_box.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace berth::plugins {

// The only way out of the boxes that workers live in. The program fills it with a proxy, so that
// plugins need not know what is behind it. One thread.
class WayOut {
 public:
  virtual ~WayOut() = default;

  // The ports that workers connect to. Without any there is no way out.
  virtual std::vector<std::uint16_t> ports() const = 0;

  struct Request {
    core::PluginId plugin;
    std::vector<std::string> allow = {};  // egress rules besides what every plugin may reach
    keeper::PluginSockets sockets = {};
  };
  // Serves the sockets of a new box. What an older box of the same plugin had is closed before.
  virtual Result<> open(Request request) = 0;
  // Other rules from now on; connections that they no longer allow are cut.
  virtual Result<> change(const core::PluginId& plugin, std::vector<std::string> allow) = 0;
  // Returns when nothing of the plugin is open. One that is not there is fine.
  virtual Task<> close(core::PluginId plugin) = 0;
  // The newest decisions about what the plugin asked to reach, oldest first: also those about
  // workers that have ended, but none from before the server started.
  virtual std::vector<bj::object> decisions(const core::PluginId& plugin,
                                            std::size_t count) const = 0;
};

}  // namespace berth::plugins
