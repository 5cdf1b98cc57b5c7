#pragma once

#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "core/ids.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::plugins {

// Whom a worker's request is for. Already checked: the plugin has the capability, and the company
// is that of the call under which the worker works.
struct RequestScope {
  core::PluginId plugin_id;
  std::string plugin_key = {};
  std::optional<core::CompanyId> company_id = {};
};

BOOST_DEFINE_ENUM_CLASS(LogLevel, debug, info, warn, error)

// One log line of a plugin: from its `log` notification, its stderr, or stray output on stdout.
struct PluginLogLine {
  LogLevel level = LogLevel::info;
  std::string source = "worker";  // worker, stderr, stdout, host
  std::string message = {};
  bj::object meta = {};
  // The company of the line's call. Absent: no call, so no company may read it.
  std::optional<core::CompanyId> company_id = {};
};

struct CompanyConfig {
  core::CompanyId company_id;
  bj::object config = {};  // secret references, never values
};

// State of the process; the plugin's row follows it.
BOOST_DEFINE_ENUM_CLASS(WorkerState, stopped, starting, running, backing_off, stopping, error)

// Why a worker is in its state. The host writes the sentence itself, so every company may read it.
// The worker's own text, cleaned of the secrets it was given, is for instance administrators.
struct StateReason {
  std::string sentence = {};
  std::string worker_said = {};

  std::string text() const {
    return worker_said.empty() ? sentence : sentence + "\n\nWorker stderr:\n" + worker_said;
  }
};

// What the workers need from the rest of the server. Called on the loop.
class HostServices {
 public:
  virtual ~HostServices() = default;

  // Whether the method exists; if not, the worker gets -32601 at once.
  virtual bool has(std::string_view method) const = 0;
  // An error becomes -32603 with its message; `forbidden` becomes -32005.
  virtual Task<bj::value> answer(RequestScope scope, std::string method, bj::object params) = 0;

  // The stored configs of the plugin, ordered by company: sent to each new worker.
  virtual Task<std::vector<CompanyConfig>> configs(core::PluginId plugin) = 0;

  // Rate-limited by the caller. Must not block.
  virtual void log(const core::PluginId& plugin, PluginLogLine line) = 0;
  // Called at each change, in order. `error` is final until the plugin is started again.
  virtual void state_changed(const core::PluginId& plugin, WorkerState state,
                             StateReason reason) = 0;
};

}  // namespace berth::plugins
