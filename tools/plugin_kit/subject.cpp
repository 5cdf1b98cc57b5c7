#include "plugin_kit/subject.hpp"

#include "base/files.hpp"
#include "plugins/command.hpp"

#include <algorithm>
#include <filesystem>

namespace berth::plugin_kit {
namespace {

constexpr std::size_t document_bytes_max = std::size_t{4} << 20;
constexpr std::chrono::milliseconds node_limit{30'000};
constexpr std::string_view plugin_id = "00000000-0000-4000-8000-000000000001";
constexpr std::string_view print_module =
    "const m=await import(process.argv[1]);"
    "process.stdout.write(JSON.stringify(m.default??m)+'\\n')";

// The module that package.json names, relative to the folder; else one of the usual places.
std::string module_of(const std::string& folder) {
  const auto text = read_file(folder + "/package.json", document_bytes_max);
  const auto package = text ? parse_json(*text) : Result<bj::value>{bj::object{}};
  if (package && package->is_object()) {
    const bj::value* plugin = package->get_object().if_contains("paperclipPlugin");
    const bj::object* object = plugin != nullptr ? plugin->if_object() : nullptr;
    const bj::value* named = object != nullptr ? object->if_contains("manifest") : nullptr;
    if (named != nullptr && named->is_string()) return std::string{named->get_string()};
  }
  return std::filesystem::exists(folder + "/dist/manifest.js") ? "dist/manifest.js" : "manifest.js";
}

Result<bj::value> print_with_node(const Request& request, const std::string& file) {
  const auto node = plugins::find_program(request.path, "node");
  if (!node) {
    return fail(Errc::plugin_unavailable, file + ": is JavaScript, and there is no node on PATH",
                "install Node 18 or newer");
  }
  BERTH_TRY(WorkerProcess process,
            WorkerProcess::spawn({.argv = {*node, "--input-type=module", "-e",
                                           std::string{print_module}, "file://" + file},
                                  .environment = {{"PATH", request.path}},
                                  .folder = request.folder}));
  process.read_until([&] { return process.stdout_ended; }, node_limit);
  // An object with an `id`, as every manifest has, looks like a request; without one, like a
  // notification.
  const auto& printed = process.requests.empty() ? process.notifications : process.requests;
  if (printed.empty()) {
    return fail(Errc::plugin_manifest_invalid, file + ": printed no manifest", process.stderr_tail);
  }
  return bj::value(printed.front());
}

}  // namespace

Result<bj::value> read_document(const Request& request) {
  const std::string plain = request.folder + "/manifest.json";
  if (std::filesystem::exists(plain)) {
    BERTH_TRY(const std::string text, read_file(plain, document_bytes_max));
    return parse_json(text);
  }
  const std::string file =
      std::filesystem::path{request.folder + "/" + module_of(request.folder)}.lexically_normal();
  if (!std::filesystem::exists(file)) {
    return fail(Errc::plugin_manifest_invalid,
                request.folder + ": holds neither manifest.json nor " +
                    file.substr(request.folder.size() + 1),
                "name the folder that a plugin was built into");
  }
  return print_with_node(request, file);
}

Result<Subject> make_subject(const Request& request, const bj::value& document) {
  Subject subject;
  BERTH_TRY(subject.manifest, plugins::parse_manifest(document));
  const auto wanted =
      std::ranges::find_if(subject.manifest.drivers, [&](const plugins::DriverDeclaration& driver) {
        return request.driver_key ? driver.driver_key == *request.driver_key
                                  : driver.kind == plugins::DriverRole::sandbox_provider;
      });
  if (wanted == subject.manifest.drivers.end()) {
    return fail(Errc::plugin_manifest_invalid,
                "the manifest declares no " +
                    (request.driver_key ? "driver " + *request.driver_key : "sandbox provider"),
                "add an entry to environmentDrivers with kind sandbox_provider");
  }
  subject.driver = *wanted;
  const plugins::HostEnvironment host{{"PATH", request.path}};
  BERTH_TRY(const plugins::WorkerCommand command,
            plugins::worker_command(subject.manifest, {.folder = request.folder},
                                    std::string{plugin_id}, host));
  subject.start = {
      .argv = command.argv, .environment = command.environment, .folder = command.folder};
  for (const auto& [name, value] : request.credentials) subject.start.environment[name] = value;
  subject.config = request.config;
  subject.credentials = request.credentials;
  subject.patience = request.patience;
  return subject;
}

}  // namespace berth::plugin_kit
