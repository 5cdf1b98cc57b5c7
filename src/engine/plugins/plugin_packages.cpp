#include "engine/plugins/plugin_packages.hpp"

#include "base/async/offload.hpp"
#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "base/remove_tree.hpp"
#include "base/text.hpp"
#include "core/config/config_schema.hpp"
#include "engine/retry.hpp"
#include "plugins/manifest/manifest_file.hpp"
#include "plugins/worker.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace berth::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t install_excerpt_bytes = 600;
constexpr std::string_view passed_on[] = {"npm_config_registry",
                                          "NPM_CONFIG_REGISTRY",
                                          "HTTP_PROXY",
                                          "HTTPS_PROXY",
                                          "NO_PROXY",
                                          "http_proxy",
                                          "https_proxy",
                                          "no_proxy",
                                          "NODE_EXTRA_CA_CERTS",
                                          "SSL_CERT_FILE"};

std::unexpected<Error> not_installed(const std::string& why, std::string remedy = "") {
  return fail(Errc::plugin_install_failed, why, std::move(remedy));
}

std::unexpected<Error> bad_package(const std::string& why, std::string remedy) {
  return fail(Errc::plugin_package_invalid, why, std::move(remedy));
}

bool is_name_part(std::string_view part) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !part.empty() && part.size() <= 214 && plain(part.front()) &&
         std::ranges::all_of(part, [&](char c) {
           return plain(c) || c == '-' || c == '.' || c == '_' || c == '~';
         });
}

// "name" or "@scope/name", which npm cannot take for anything else: no path, no URL, no option.
bool is_package_name(std::string_view name) {
  if (!name.starts_with('@')) return is_name_part(name);
  const std::size_t slash = name.find('/');
  return slash != std::string_view::npos && is_name_part(name.substr(1, slash - 1)) &&
         is_name_part(name.substr(slash + 1));
}

bool is_version(std::string_view version) {
  return !version.empty() && version.size() <= 100 && version.front() != '-' &&
         std::ranges::all_of(version, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '-' || c == '+' || c == '^' || c == '~';
         });
}

bool is_archive(const std::string& path) {
  return path.ends_with(".tgz") || path.ends_with(".tar.gz") || path.ends_with(".tar");
}

// A fetching program makes no requests; its output other than errors is ignored.
class Silence final : public plugins::Peer {
 public:
  asio::awaitable<plugins::Reply> answer(plugins::Request /*request*/) override {
    co_return std::unexpected(plugins::RpcError{.message = "requests are not answered here"});
  }
  bool hear(plugins::Notification /*notification*/) override { return false; }
  void unread(std::string_view /*why*/, std::string_view /*start_of_line*/) override {}
};

bool has_dependencies(const std::string& package_folder) {
  const Result<std::string> text =
      read_file(package_folder + "/package.json", std::size_t{1} << 20);
  if (!text) return false;
  const Result<bj::value> json = parse_json(*text);
  if (!json) return false;
  return !peek<bj::object>(*json, "dependencies").value_or(bj::object{}).empty();
}

bool is_package(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "package.json", ignored) ||
         fs::exists(folder / "manifest.json", ignored);
}

// Where the package is in the unpacked archive: npm archives contain one folder.
Result<std::string> package_in(const std::string& folder) {
  if (is_package(folder)) return folder;
  BERTH_TRY(const std::vector<std::string> names, names_in(folder));
  for (const std::string& name : names) {
    if (is_package(fs::path{folder} / name)) return folder + "/" + name;
  }
  return not_installed("the archive holds neither a package.json nor a manifest.json",
                       "pack the plugin with 'npm pack', or with its manifest.json at the top");
}

// Another user needs execute permission on every folder above its own to get there.
Result<> check_way(const fs::path& folder) {
  for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    struct stat found{};
    if (::stat(at.c_str(), &found) == 0 && (found.st_mode & S_IXOTH) == 0) {
      return not_installed(at.string() + " lets no other user through, and plugins run as others",
                           "give the server a home that others can reach: --home /var/lib/berth");
    }
  }
  return {};
}

// The same for an operator's own folder: workers read it in place.
Result<> check_own_folder(const fs::path& folder) {
  std::string closed;  // all of them: one that is opened alone does not help
  for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    struct stat found{};
    if (::stat(at.c_str(), &found) != 0 || (found.st_mode & S_IXOTH) != 0) continue;
    closed = at.string() + (closed.empty() ? "" : " ") + closed;
  }
  if (closed.empty()) return {};
  return not_installed(
      "the plugin is below folders that let no other user through, and plugins run as users of "
      "their own: " +
          closed,
      "chmod o+x " + closed + ", or copy the plugin to a folder that others reach, such as /opt");
}

// Checks files of a package that its worker needs.
Result<> check_readable(const fs::path& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0 || (found.st_mode & S_IROTH) != 0) return {};
  return not_installed(
      file.string() + " cannot be read by other users, and plugins run as users of their own",
      "chmod -R o+rX " + file.parent_path().string());
}

}  // namespace

PluginPackages::PluginPackages(asio::any_io_executor executor, asio::thread_pool& pool,
                               PackageOptions options)
    : executor_(std::move(executor)), pool_(pool), options_(std::move(options)) {}

std::string PluginPackages::path_of(const std::string& folder_id) const {
  return options_.folder + "/" + folder_id;
}

Result<PackageRequest> PluginPackages::read_request(const std::string& name,
                                                    const std::optional<std::string>& version,
                                                    PackageNaming naming) {
  const std::string give_path = "give the absolute path of a folder or .tgz archive on the server";
  if (name.contains('\0')) return bad_package("the package name holds a zero byte", give_path);
  if (naming == PackageNaming::by_name && !name.starts_with('/')) {
    if (!is_package_name(name)) {
      return bad_package(in_quotes(name) + " is not the name of an npm package",
                         "for a folder or an archive, give its absolute path");
    }
    if (version && !is_version(*version)) {
      return bad_package(in_quotes(*version) + " is not a version",
                         "give a version such as 1.2.3, or none for the newest");
    }
    return PackageRequest{core::PluginSource::npm, name, version};
  }
  if (version) {
    return bad_package("version " + in_quotes(*version) + " is given for the path " +
                           in_quotes(name) + ": only packages of the registry have one",
                       "leave version out");
  }
  if (!name.starts_with('/')) {
    return bad_package("the path " + in_quotes(name) + " is not absolute", give_path);
  }
  std::error_code error;
  const fs::path real = fs::canonical(name, error);
  if (error) {
    return bad_package("cannot find the plugin at " + in_quotes(name) + ": " + error.message(),
                       give_path);
  }
  if (fs::is_directory(real, error)) {
    return PackageRequest{core::PluginSource::folder, real.string(), {}};
  }
  if (fs::is_regular_file(real, error) && is_archive(real.string())) {
    return PackageRequest{core::PluginSource::tarball, real.string(), {}};
  }
  return bad_package(in_quotes(name) + " is neither a folder nor a .tgz archive", give_path);
}

plugins::Launching PluginPackages::launching() const {
  return {.keeper_program = options_.keeper_program, .user = options_.fetcher};
}

Result<> PluginPackages::make_folder(const std::string& folder) const {
  BERTH_DO(make_directories(options_.folder, 0755));
  if (options_.fetcher) BERTH_DO(check_way(options_.folder));
  if (::mkdir(folder.c_str(), 0755) != 0) return io_failure("make", folder, errno);
  if (options_.fetcher &&
      ::chown(folder.c_str(), options_.fetcher->uid, options_.fetcher->gid) != 0) {
    return io_failure("hand over", folder, errno);
  }
  return {};
}

std::map<std::string, std::string> PluginPackages::fetch_environment(
    const std::string& folder) const {
  const auto path = options_.environment.find("PATH");
  std::map<std::string, std::string> out{
      {"PATH", path != options_.environment.end() ? path->second : "/usr/local/bin:/usr/bin:/bin"},
      {"HOME", folder + "/.fetch"},
      {"npm_config_cache", folder + "/.fetch/cache"},
      {"npm_config_update_notifier", "false"},
      {"LC_ALL", "C.UTF-8"}};
  for (const std::string_view name : passed_on) {
    const auto found = options_.environment.find(std::string{name});
    if (found != options_.environment.end()) out.insert(*found);
  }
  return out;
}

Task<> PluginPackages::run(std::vector<std::string> argv, std::string folder) {
  using namespace boost::asio::experimental::awaitable_operators;
  const std::string name = argv.front();
  BERTH_CO_TRY(const std::string path, [&]() -> Result<std::string> {
    const auto found = plugins::find_program(fetch_environment(folder).at("PATH"), name);
    if (found) return *found;
    return not_installed(name + " is not on the PATH of the server", "install " + name);
  }());
  argv.front() = path;
  const plugins::WorkerCommand command{
      .argv = std::move(argv), .folder = folder, .environment = fetch_environment(folder)};
  Silence silence;
  BERTH_CO_TRY(const std::unique_ptr<plugins::Worker> program,
               plugins::Worker::spawn(executor_, command, launching(), silence));
  const auto first = co_await (program->ended() || pause_for(executor_, options_.fetch_deadline));
  const std::string said{clipped(as_utf8(program->stderr_tail()), install_excerpt_bytes)};
  const std::optional<plugins::WorkerExit> exit = program->exit();
  BERTH_CO_DO(co_await program->close());
  if (first.index() == 1) {
    co_return not_installed(name + " took longer than " +
                            std::to_string(options_.fetch_deadline.count() / 1000) + " s");
  }
  if (exit && exit->code == 0) co_return Result<>{};
  co_return not_installed(name + " failed" + (exit ? " (" + describe(*exit) + ")" : "") +
                          (said.empty() ? "" : ": " + said));
}

Task<plugins::Package> PluginPackages::fetch_from_npm(PackageRequest request, std::string folder) {
  const std::string what = request.version ? request.name + "@" + *request.version : request.name;
  std::vector<std::string> argv{"npm",
                                "install",
                                what,
                                "--prefix",
                                folder,
                                "--save",
                                "--ignore-scripts",
                                "--no-audit",
                                "--no-fund",
                                "--omit=dev",
                                "--loglevel=error"};
  BERTH_CO_DO(co_await run(std::move(argv), folder));
  co_return plugins::Package{.folder = folder + "/node_modules/" + request.name,
                             .name = request.name,
                             .origin = plugins::PackageOrigin::registry};
}

Task<plugins::Package> PluginPackages::unpack(PackageRequest request, std::string folder) {
  std::error_code error;
  if (fs::file_size(request.name, error) > options_.archive_bytes_max) {
    co_return not_installed("the archive is larger than " +
                            std::to_string(options_.archive_bytes_max >> 20) + " MiB");
  }
  // A copy, because the fetcher may be unable to reach the operator's file.
  const std::string copy = folder + "/.archive.tgz";
  const auto copied = [&]() -> Result<> {
    std::error_code failed;
    if (!fs::copy_file(request.name, copy, failed)) {
      return not_installed("copy " + request.name + ": " + failed.message());
    }
    ::chmod(copy.c_str(), 0644);
    return {};
  };
  BERTH_CO_DO(co_await offload(pool_, copied));
  const std::string into = folder + "/package";
  BERTH_CO_DO(make_folder(into));
  std::vector<std::string> argv{
      "tar", "-xf", copy, "-C", into, "--no-same-owner", "--no-same-permissions"};
  BERTH_CO_DO(co_await run(std::move(argv), folder));
  BERTH_CO_TRY(const std::string inner, package_in(into));
  if (has_dependencies(inner)) {
    std::vector<std::string> install{"npm",       "install",          "--prefix",
                                     inner,       "--ignore-scripts", "--no-audit",
                                     "--no-fund", "--omit=dev",       "--loglevel=error"};
    BERTH_CO_DO(co_await run(std::move(install), folder));
  }
  co_return plugins::Package{.folder = inner, .origin = plugins::PackageOrigin::registry};
}

Task<FetchedPackage> PluginPackages::fetch(PackageRequest request, std::string folder_id) {
  plugins::Package package{.folder = request.name, .origin = plugins::PackageOrigin::folder};
  if (request.source == core::PluginSource::folder && options_.fetcher) {
    BERTH_CO_DO(check_own_folder(request.name));
    for (const char* name : {"manifest.json", "package.json"}) {
      BERTH_CO_DO(check_readable(fs::path{request.name} / name));
    }
  }
  if (request.source != core::PluginSource::folder) {
    const std::string folder = path_of(folder_id);
    BERTH_CO_DO(make_folder(folder));
    if (request.source == core::PluginSource::npm) {
      BERTH_CO_TRY(package, co_await fetch_from_npm(std::move(request), folder));
    } else {
      BERTH_CO_TRY(package, co_await unpack(std::move(request), folder));
    }
    const auto tidy = [&]() -> Result<> {
      BERTH_DO(remove_tree(folder + "/.fetch"));
      return remove_tree(folder + "/.archive.tgz");
    };
    BERTH_CO_DO(co_await offload(pool_, tidy));
  }
  co_return co_await verify(std::move(package));
}

Task<FetchedPackage> PluginPackages::verify(plugins::Package package) {
  BERTH_CO_TRY(plugins::Manifest manifest,
               co_await plugins::read_manifest(executor_, package.folder, launching()));
  BERTH_CO_DO(plugins::check_host_version(manifest, options_.host_version));
  if (options_.fetcher) {
    const fs::path worker = fs::path{package.folder} / manifest.worker_entrypoint;
    BERTH_CO_DO(check_own_folder(worker.lexically_normal().parent_path()));
    BERTH_CO_DO(check_readable(worker.lexically_normal()));
  }
  BERTH_CO_DO(plugins::worker_command(manifest, package, "verify", options_.environment));
  if (manifest.instance_config_schema) {
    BERTH_CO_DO(
        core::ConfigSchema::read(*manifest.instance_config_schema, "/instanceConfigSchema"));
  }
  for (std::size_t i = 0; i < manifest.drivers.size(); ++i) {
    const std::string at = "/environmentDrivers/" + std::to_string(i) + "/configSchema";
    BERTH_CO_DO(core::ConfigSchema::read(manifest.drivers[i].config_schema, at));
  }
  co_return FetchedPackage{std::move(manifest), std::move(package)};
}

Task<> PluginPackages::discard(std::string folder_id) {
  const std::string folder = path_of(folder_id);
  co_return co_await offload(pool_, [&] { return remove_tree(folder); });
}

}  // namespace berth::engine
