#pragma once

#include "plugin_kit/worker_process.hpp"
#include "plugins/manifest/manifest.hpp"

#include <map>
#include <optional>
#include <string>

namespace berth::plugin_kit {

// How long a plugin may take before a check fails it.
struct Patience {
  WorkerProcess::Limit good_start{5'000};
  WorkerProcess::Limit stop{10'000};
  WorkerProcess::Limit orphans{10'000};  // to end by themselves
  WorkerProcess::Limit silence{60'000};  // for a host that never answers
};

// What to examine, as the user requested it.
struct Request {
  std::string folder;                                   // of the plugin
  std::optional<std::string> driver_key = {};           // the first sandbox provider by default
  bj::object config = {};                               // of the provider
  std::map<std::string, std::string> credentials = {};  // variables for the worker
  std::string path;                                     // PATH, where Node is looked for
  std::optional<std::string> only = {};                 // checks whose name contains this
  Patience patience = {};
};

struct Subject {
  plugins::Manifest manifest;
  plugins::DriverDeclaration driver;
  WorkerProcess::Start start;
  bj::object config;
  std::map<std::string, std::string> credentials;
  Patience patience;
};

// A folder's manifest as an unchecked document: manifest.json, or Node's printout of the module
// that package.json names.
Result<bj::value> read_document(const Request& request);
// plugin_manifest_invalid when it breaks a rule or has no such provider.
Result<Subject> make_subject(const Request& request, const bj::value& document);

}  // namespace berth::plugin_kit
