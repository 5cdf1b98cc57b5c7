#pragma once

#include "base/async/task.hpp"
#include "plugins/command.hpp"
#include "plugins/manifest/manifest.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <string>

namespace berth::plugins {

struct ManifestLimits {
  std::size_t bytes_max = std::size_t{4} << 20;
  std::chrono::milliseconds deadline{15'000};
};

// The manifest of a package folder: `manifest.json` (or the JSON file that
// `paperclipPlugin.manifest` or `berthPlugin.manifest` of package.json names), else the JavaScript
// module that package.json names, which Node prints, as `way.user`, with an environment from
// nothing and a deadline.
Task<Manifest> read_manifest(asio::any_io_executor executor, std::string package_folder,
                             Launching way, ManifestLimits limits = {});

}  // namespace berth::plugins
