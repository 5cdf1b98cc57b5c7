#include "plugins/manifest/manifest_file.hpp"

#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "keepers/keeper_process.hpp"
#include "plugins/box.hpp"
#include "plugins/spawn.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <signal.h>

#include <filesystem>

namespace berth::plugins {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t package_json_max = std::size_t{1} << 20;
constexpr std::size_t stderr_max = 4'000;
constexpr const char* print_script =
    "const m = await import(process.argv[1]);"
    "process.stdout.write(JSON.stringify(m.default ?? m));";

std::unexpected<Error> invalid(const std::string& folder, const std::string& why,
                               std::string remedy = {}) {
  return fail(Errc::plugin_manifest_invalid, "package " + folder + ": " + why, std::move(remedy));
}

// Where package.json puts the manifest, and the usual places.
std::vector<std::string> candidates_in(const std::string& folder) {
  std::vector<std::string> names{"manifest.json"};
  if (const auto text = read_file(folder + "/package.json", package_json_max)) {
    const Result<bj::value> json = parse_json(*text);
    const bj::object* package = json ? json->if_object() : nullptr;
    for (const std::string_view key : {"berthPlugin", "paperclipPlugin"}) {
      const bj::value* part = package == nullptr ? nullptr : package->if_contains(key);
      if (part == nullptr || !part->is_object()) continue;
      if (auto named = text_in(part->get_object(), "manifest")) {
        names.insert(names.begin(), *std::move(named));
      }
    }
  }
  names.emplace_back("dist/manifest.js");
  names.emplace_back("manifest.js");
  return names;
}

Result<fs::path> find_manifest(const std::string& folder) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return invalid(folder, "cannot be read: " + error.message());
  for (const std::string& name : candidates_in(folder)) {
    const fs::path file = fs::canonical(root / name, error);
    if (error || !fs::is_regular_file(file, error)) continue;
    if (file.string().starts_with(root.string() + "/")) return file;
  }
  return invalid(folder, "has neither manifest.json nor a manifest that package.json names",
                 "build the plugin, or name its manifest in paperclipPlugin.manifest");
}

// Reads a stream up to a limit. The rest is discarded, so that the writer can end.
asio::awaitable<std::string> read_all(asio::posix::stream_descriptor& from, std::size_t bytes_max) {
  std::string all;
  std::array<char, 16 << 10> buffer{};
  while (true) {
    const auto [error, size] =
        co_await from.async_read_some(asio::buffer(buffer), asio::as_tuple(asio::use_awaitable));
    if (error) co_return all;
    all.append(buffer.data(), std::min(size, bytes_max + 1 - std::min(all.size(), bytes_max + 1)));
  }
}

Task<std::string> print_module(asio::any_io_executor executor, const fs::path& file,
                               const std::string& package_folder, const Launching& way,
                               const ManifestLimits& limits) {
  const auto node = find_program(way.path, "node");
  if (!node) {
    co_return fail(Errc::plugin_unavailable,
                   "the manifest " + file.string() + " is JavaScript, and there is no node on PATH",
                   "install Node.js 18 or newer (Debian: apt-get install nodejs)");
  }
  const WorkerCommand command{
      .argv = {*node, "--input-type=module", "-e", print_script, "file://" + file.string()},
      .folder = file.parent_path().string(),
      .environment = {{"PATH", way.path}, {"NODE_ENV", "production"}, {"TZ", "UTC"}}};
  Launching boxed = way;
  boxed.box = reading_box(command, {.folder = package_folder});
  BERTH_CO_TRY(Spawned spawned, spawn_program(command, boxed));
  const pid_t pid = spawned.pid;
  spawned.in = Fd{};
  asio::posix::stream_descriptor out{executor, spawned.out.release()};
  asio::posix::stream_descriptor err{executor, spawned.err.release()};
  asio::steady_timer deadline{executor, limits.deadline};
  bool late = false;
  // The streams end with the program, so nothing below waits longer than this.
  deadline.async_wait([pid, &late](const boost::system::error_code& error) {
    if (error) return;
    late = true;
    ::kill(pid, SIGHUP);
  });
  std::string printed = co_await read_all(out, limits.bytes_max);
  const std::string said = co_await read_all(err, stderr_max);
  BERTH_CO_DO(co_await keepers::reap(executor, pid));
  deadline.cancel();
  if (late) {
    co_return invalid(file.string(),
                      "did not print within " + std::to_string(limits.deadline.count()) + " ms");
  }
  if (printed.empty()) {
    co_return invalid(file.string(), "printed nothing: " + as_utf8(clipped(said, stderr_max)));
  }
  if (printed.size() <= limits.bytes_max) co_return printed;
  co_return invalid(file.string(), "is larger than " + std::to_string(limits.bytes_max) + " bytes");
}

}  // namespace

Task<Manifest> read_manifest(asio::any_io_executor executor, std::string package_folder,
                             Launching way, ManifestLimits limits) {
  BERTH_CO_TRY(const fs::path file, find_manifest(package_folder));
  Result<std::string> text =
      file.extension() == ".json"
          ? read_file(file.string(), limits.bytes_max)
          : co_await print_module(executor, file, package_folder, way, limits);
  if (!text) co_return std::unexpected(text.error());
  const Result<bj::value> json = parse_json(*text);
  if (!json) co_return invalid(file.string(), json.error().message);
  co_return parse_manifest(*json);
}

}  // namespace berth::plugins
