#pragma once

#include "base/json/json.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace berth::sdk {

// Who a plugin is: what of its manifest cannot be seen from its code.
struct About {
  std::string id;  // lower-case letters, digits, '.', '_' and '-'
  std::string version;
  std::string display_name;
  std::string description;
  std::string author;
  // The provider's own name, by which environments ask for it.
  std::string driver_key;
  std::vector<std::string> categories = {"automation"};
  // Besides `environment.drivers.register`: what the plugin asks of the host, for example
  // `plugin.state.read`.
  std::vector<std::string> capabilities = {};
  // More keys of the driver's entry, for example `sandboxCapabilities`.
  bj::object driver = {};
};

// What a manifest says of the hooks and the config.
struct Shape {
  bj::object config_schema;
  bool sets_up = false;
  bool captures = false;
  bool deletes_templates = false;
  bool logs_in = false;
  bool streams = false;
};

// `worker` is the path of the program, relative to the manifest's folder.
bj::object manifest_of(const About& about, const Shape& shape, std::string_view worker);

}  // namespace berth::sdk
