#pragma once

#include "base/names.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

namespace berth::cli {

enum class PluginLanguage { cpp, js };
BOOST_DESCRIBE_ENUM(PluginLanguage, cpp, js)

struct SkeletonOptions {
  std::string name;  // of the plugin, and the provider's key
  PluginLanguage language = PluginLanguage::cpp;
  std::string sdk;    // the folder of the C++ SDK
  std::string berth;  // this program, for the skeleton's test
};

struct SkeletonFile {
  std::string path;  // in the plugin's folder
  std::string text;
};

// A working provider as a starting point. Fails with bad_request when a manifest may not have the
// name.
Result<std::vector<SkeletonFile>> plugin_skeleton(const SkeletonOptions& request);

}  // namespace berth::cli
