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

// Reads the manifest of a package folder: `manifest.json`, or the JSON file that
// `paperclipPlugin.manifest` or `berthPlugin.manifest` in package.json names. Otherwise Node prints
// the JavaScript module that package.json names. It runs as `way.user`, with an empty environment
// and a deadline.
Task<Manifest> read_manifest(asio::any_io_executor executor, std::string package_folder,
                             Launching way, ManifestLimits limits = {});

}  // namespace berth::plugins
