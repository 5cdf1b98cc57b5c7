#include "plugins/command.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <unistd.h>

namespace berth::plugins {
namespace {

namespace fs = std::filesystem;

// The host variables that every plugin with environment drivers sees.
constexpr auto driver_variables =
    std::to_array<const char*>({"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY",
                                "GEMINI_API_KEY", "OPENROUTER_API_KEY", "KUBERNETES_SERVICE_HOST",
                                "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS"});

// A provider's credential, for the package that is known to belong to that provider.
struct Credential {
  const char* package;
  const char* driver_key;
  const char* variable;
};
constexpr auto credentials = std::to_array<Credential>({
    {"@paperclipai/plugin-daytona", "daytona", "DAYTONA_API_KEY"},
    {"@paperclipai/plugin-e2b", "e2b", "E2B_API_KEY"},
    {"@paperclipai/plugin-exe-dev", "exe-dev", "EXE_API_KEY"},
    {"@paperclipai/plugin-novita-sandbox", "novita", "NOVITA_API_KEY"},
});

std::string value_or(const HostEnvironment& host, const char* name, const char* otherwise) {
  const auto found = host.find(name);
  return found == host.end() || found->second.empty() ? otherwise : found->second;
}

bool is_blank_text(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

bool is_javascript(const fs::path& file) {
  const std::string kind = file.extension().string();
  return kind == ".js" || kind == ".mjs" || kind == ".cjs";
}

bool is_inside(const fs::path& file, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end == folder.end() && rest != file.end();
}

constexpr std::string_view modules = "/node_modules/";

// npm puts a package's dependencies beside it.
std::string with_its_modules(const std::string& folder) {
  const std::size_t at = (folder + "/").find(modules);
  return at == std::string::npos ? folder : folder.substr(0, at + modules.size() - 1);
}

// The program in a script's first line, or with `env` the program that it finds.
std::optional<std::string> interpreter_of(const std::string& file, const std::string& path) {
  std::ifstream in{file, std::ios::binary};
  std::array<char, 256> start{};
  in.read(start.data(), start.size());
  std::string_view line{start.data(), static_cast<std::size_t>(in.gcount())};
  if (!line.starts_with("#!")) return std::nullopt;
  line = line.substr(2, line.find('\n') - 2);
  const auto next_word = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
    line.remove_prefix(word.size());
    return word;
  };
  const std::string_view program = next_word();
  if (!program.ends_with("/env")) return std::string{program};
  std::string_view name = next_word();
  while (name.starts_with('-')) name = next_word();
  // Inside a box, PATH holds only the folders of /usr, unless another one is needed.
  const auto of_the_system = find_program("/usr/local/bin:/usr/bin:/bin", std::string{name});
  return of_the_system ? of_the_system : find_program(path, std::string{name});
}

bool is_in_usr(const fs::path& path) {
  return is_inside(path, "/usr") || is_inside(path, "/bin") || is_inside(path, "/lib");
}

}  // namespace

std::vector<std::string> program_folders(const WorkerCommand& command, const Package& package,
                                         const std::string& hidden) {
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& folder) {
    const bool shows_hidden =
        !hidden.empty() && (folder == fs::path{hidden} || is_inside(hidden, folder));
    const std::string text = folder.string();
    if (folder.is_absolute() && folder.has_relative_path() && !shows_hidden &&
        std::ranges::find(folders, text) == folders.end()) {
      folders.push_back(text);
    }
  };
  std::error_code ignored;
  const fs::path real = fs::canonical(package.folder, ignored);
  if (!ignored) add(with_its_modules(real.string()));
  const auto path = command.environment.find("PATH");
  std::vector<std::string> programs{command.argv.front()};
  if (const auto script = interpreter_of(command.argv.front(),
                                         path == command.environment.end() ? "" : path->second)) {
    programs.push_back(*script);
  }
  for (const std::string& program : programs) {
    for (const fs::path& file : {fs::path{program}, fs::canonical(program, ignored)}) {
      const fs::path folder = file.parent_path();
      if (file.empty() || is_in_usr(file) || is_inside(file, real)) continue;
      add(folder);
      if (folder.filename() == "bin" && fs::exists(folder.parent_path() / "lib", ignored)) {
        add(folder.parent_path() / "lib");
      }
    }
  }
  const auto node_path = command.environment.find("NODE_PATH");
  const std::string extra = node_path == command.environment.end() ? "" : node_path->second;
  for (std::size_t at = 0; at < extra.size();) {
    const std::size_t end = std::min(extra.find(':', at), extra.size());
    add(extra.substr(at, end - at));
    at = end + 1;
  }
  return folders;
}

std::map<std::string, std::string> worker_environment(const Manifest& manifest,
                                                      const Package& package,
                                                      const std::string& plugin_id,
                                                      const HostEnvironment& host) {
  std::map<std::string, std::string> out;
  const auto pass = [&](const char* name) {
    const auto found = host.find(name);
    if (found != host.end() && !is_blank_text(found->second)) out[name] = found->second;
  };
  if (manifest.has_capability("environment.drivers.register")) {
    for (const char* name : driver_variables) pass(name);
    const bool trusted = package.origin != PackageOrigin::folder;
    for (const Credential& one : credentials) {
      const bool its_own = package.name == one.package && manifest.find_driver(one.driver_key);
      if (trusted && its_own) pass(one.variable);
    }
  }
  // Set last, so that no passed-through variable can replace them.
  out["PATH"] = value_or(host, "PATH", "");
  out["NODE_PATH"] = value_or(host, "NODE_PATH", "");
  out["NODE_ENV"] = value_or(host, "NODE_ENV", "production");
  out["TZ"] = value_or(host, "TZ", "UTC");
  out["PAPERCLIP_PLUGIN_ID"] = plugin_id;
  out["PAPERCLIP_DEPLOYMENT_MODE"] = value_or(host, "PAPERCLIP_DEPLOYMENT_MODE", "");
  out["PAPERCLIP_DEPLOYMENT_EXPOSURE"] = value_or(host, "PAPERCLIP_DEPLOYMENT_EXPOSURE", "");
  return out;
}

Result<WorkerCommand> worker_command(const Manifest& manifest, const Package& package,
                                     const std::string& plugin_id, const HostEnvironment& host) {
  std::error_code error;
  const fs::path folder = fs::canonical(package.folder, error);
  const fs::path file =
      error ? fs::path{} : fs::canonical(folder / manifest.worker_entrypoint, error);
  if (error || !is_inside(file, folder) || !fs::is_regular_file(file, error)) {
    return fail(Errc::plugin_unavailable,
                "plugin " + manifest.id + ": its worker " + in_quotes(manifest.worker_entrypoint) +
                    " is not a file in its package " + package.folder,
                "build the plugin, or install it again");
  }
  WorkerCommand command{.argv = {file.string()}, .folder = folder.string()};
  command.environment = worker_environment(manifest, package, plugin_id, host);
  if (!is_javascript(file)) {
    if (::access(file.c_str(), X_OK) == 0) return command;
    return fail(Errc::plugin_unavailable,
                "plugin " + manifest.id + ": its worker " + file.string() +
                    " is neither JavaScript nor executable",
                "mark the file as executable: chmod +x");
  }
  const auto node = find_program(value_or(host, "PATH", "/usr/local/bin:/usr/bin:/bin"), "node");
  if (!node) {
    return fail(Errc::plugin_unavailable,
                "plugin " + manifest.id + " is written in JavaScript, and there is no node on PATH",
                "install Node.js 18 or newer (Debian: apt-get install nodejs)");
  }
  command.argv.insert(command.argv.begin(), *node);
  return command;
}

std::optional<std::string> find_program(const std::string& path, const std::string& name) {
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string file = path.substr(at, end - at) + "/" + name;
    if (file.starts_with('/') && ::access(file.c_str(), X_OK) == 0) return file;
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace berth::plugins
