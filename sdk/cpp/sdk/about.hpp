#pragma once

#include "base/json/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace berth::sdk {

// A plugin's identity: the part of its manifest that cannot be derived from its code.
struct About {
  std::string id;  // lower-case letters, digits, '.', '_' and '-'
  std::string version;
  std::string display_name;
  std::string description;
  std::string author;
  // The provider's key, by which environments select it.
  std::string driver_key;
  std::vector<std::string> categories = {"automation"};
  // In addition to `environment.drivers.register`: what the plugin requests from the host, for
  // example `plugin.state.read`.
  std::vector<std::string> capabilities = {};
  // More keys for the driver's entry, for example `sandboxCapabilities`.
  bj::object driver = {};
};

// The manifest's view of the hooks and the config.
struct Shape {
  bj::object config_schema;
  bool sets_up = false;
  bool captures = false;
  bool deletes_templates = false;
  bool logs_in = false;
  bool streams = false;
};

// `worker` is the program's path, relative to the manifest's folder.
bj::object manifest_of(const About& about, const Shape& shape, std::string_view worker);

}  // namespace berth::sdk
