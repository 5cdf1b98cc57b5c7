#pragma once

#include "base/async/task.hpp"
#include "core/rows/plugin.hpp"
#include "plugins/command.hpp"
#include "plugins/manifest/manifest.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>

namespace berth::engine {

struct PackageOptions {
  std::string folder;          // the home's plugin folder; each package has a subfolder
  std::string keeper_program;  // starts the fetching program, as the user below
  // The user that fetches and reads manifests when the server is root: neither root nor a worker's
  // user, so that no worker can change what it runs.
  std::optional<plugins::WorkerUser> fetcher = {};
  plugins::HostEnvironment environment = {};
  std::string host_version = "0.0.0";
  std::chrono::milliseconds fetch_deadline{120'000};
  std::uint64_t archive_bytes_max = std::uint64_t{512} << 20;
};

// A name that begins with '/' is a path either way.
enum class PackageNaming { by_name, by_path };

struct PackageRequest {
  core::PluginSource source = core::PluginSource::folder;
  std::string name;  // a path, or a registry name
  std::optional<std::string> version = {};
};

struct FetchedPackage {
  plugins::Manifest manifest;
  plugins::Package package;
};

// Fetches packages and verifies them before they are used. Nothing in a package is executed except
// its manifest if that is a module, and then as the fetcher user.
class PluginPackages {
 public:
  // The pool removes folders and must outlive this object.
  PluginPackages(asio::any_io_executor executor, asio::thread_pool& pool, PackageOptions options);

  // What a caller asks for: a path that is there, or a name. plugin_package_invalid.
  static Result<PackageRequest> read_request(const std::string& name,
                                             const std::optional<std::string>& version,
                                             PackageNaming naming);

  // Fetches into the folder of that id, which is created; an operator's own folder is used in
  // place.
  Task<FetchedPackage> fetch(PackageRequest request, std::string folder_id);
  // Verifies a package that is already here.
  Task<FetchedPackage> verify(plugins::Package package);
  Task<> discard(std::string folder_id);

  std::string path_of(const std::string& folder_id) const;
  const PackageOptions& options() const { return options_; }

 private:
  Task<plugins::Package> fetch_from_npm(PackageRequest request, std::string folder);
  Task<plugins::Package> unpack(PackageRequest request, std::string folder);
  Result<> make_folder(const std::string& folder) const;
  Task<> run(std::vector<std::string> argv, std::string folder);
  std::map<std::string, std::string> fetch_environment(const std::string& folder) const;
  plugins::Launching launching() const;

  asio::any_io_executor executor_;
  asio::thread_pool& pool_;
  PackageOptions options_;
};

}  // namespace berth::engine
