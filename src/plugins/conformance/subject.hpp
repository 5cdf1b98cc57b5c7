#pragma once

#include "plugins/conformance/worker_process.hpp"
#include "plugins/manifest.hpp"

#include <map>
#include <optional>
#include <string>

namespace berth::plugins::conformance {

// What is to be examined, as a person asks for it.
struct Wish {
  std::string folder;                                   // of the plugin
  std::optional<std::string> driver_key = {};           // the first sandbox provider by default
  bj::object config = {};                               // of the provider
  std::map<std::string, std::string> credentials = {};  // variables for the worker
  std::string path;                                     // PATH, where Node is looked for
  std::optional<std::string> only = {};                 // checks whose name has this in it
};

struct Subject {
  Manifest manifest;
  DriverDeclaration driver;
  WorkerProcess::Start start;
  bj::object config;
  std::map<std::string, std::string> credentials;
};

// The manifest of a folder, as a document that is not checked yet: manifest.json, or what Node
// prints of the module that package.json names.
Result<bj::value> read_document(const Wish& wish);
// plugin_manifest_invalid when it breaks a rule or has no such provider.
Result<Subject> make_subject(const Wish& wish, const bj::value& document);

}  // namespace berth::plugins::conformance
