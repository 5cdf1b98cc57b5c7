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

// A provider that works, to be changed into the one that is wanted. bad_request when the name is
// none that a manifest may have.
Result<std::vector<SkeletonFile>> plugin_skeleton(const SkeletonOptions& request);

}  // namespace berth::cli
