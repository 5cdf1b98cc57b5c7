#include "cli/sandbox_shortfall.hpp"

#include "base/files.hpp"
#include "base/json/peek.hpp"
#include "cli/objects.hpp"
#include "core/config/linux_config.hpp"
#include "keeper/sandbox/cgroup/cgroup_settings.hpp"

#include <algorithm>
#include <cmath>

namespace berth::cli {
namespace {

using keeper::sandbox::Limits;
using keeper::sandbox::Setting;

// A limit by its flag and by the name under which a keeper reports it missing.
struct NamedLimit {
  std::string flag;
  std::string name;
};

// A limit that covers several settings is named after the first.
std::string name_of_only(const Limits& limits) {
  const std::vector<Setting> settings = keeper::sandbox::settings_of(limits);
  return settings.empty() ? "" : settings.front().limit;
}

std::vector<NamedLimit> limits_in(const bj::object& config) {
  std::vector<NamedLimit> out;
  const auto wanted = read_loosely<core::LinuxConfig>(config);
  if (wanted.memory_mb) {
    const Limits only{.memory_bytes = static_cast<std::uint64_t>(*wanted.memory_mb) << 20};
    out.push_back({"--memory", name_of_only(only)});
  }
  if (wanted.pids) {
    const auto pids = static_cast<std::uint32_t>(*wanted.pids);
    out.push_back({"--pids", name_of_only({.pids = pids})});
  }
  if (wanted.cpus) {
    const auto millis = static_cast<std::uint32_t>(std::lround(*wanted.cpus * 1000));
    out.push_back({"--cpus", name_of_only({.cpu_millis = millis})});
  }
  return out;
}

bj::array missing_in(const bj::object& isolation) {
  return peek<bj::array>(isolation, "missing").value_or(bj::array{});
}

// A wall that a flag removes, by the name under which a keeper reports it missing.
struct OpenedByFlag {
  std::string_view feature, field, value, flag;
};
constexpr OpenedByFlag opened_by_flags[] = {
    {"network-namespace", "network", "host", "--net host"},
    {"ptrace-filter", "allow", "ptrace", "--weaken ptrace"},
    {"namespace-filter", "allow", "nested_user_namespaces", "--weaken nested_user_namespaces"},
};

bool says(const bj::object& config, std::string_view field, std::string_view value) {
  const auto found = peek<bj::value>(config, field);
  if (!found) return false;
  const auto is_it = [&](const bj::value& one) {
    return one.is_string() && std::string_view{one.get_string()} == value;
  };
  return found->is_array() ? std::ranges::any_of(found->get_array(), is_it) : is_it(*found);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

std::string without_server(std::string remedy) {
  return replaced(std::move(remedy), "run the server as root", "run berth as root");
}

std::string remedy_of(const bj::object& config, const bj::object& isolation,
                      const bj::value& missing) {
  // Without namespaces none of the flags is the cause.
  const bool is_minimal = text_of(isolation, "level") == "minimal";
  for (const OpenedByFlag& one : opened_by_flags) {
    if (is_minimal || text_of(missing, "feature") != one.feature) continue;
    if (says(config, one.field, one.value)) return "leave out " + std::string{one.flag};
  }
  return without_server(text_of(missing, "remedy"));
}

}  // namespace

Result<> expect_limits_in_force(const bj::object& config, const bj::object& isolation) {
  if (config.contains("minIsolation")) return {};
  const bj::array missing = missing_in(isolation);
  for (const NamedLimit& limit : limits_in(config)) {
    const auto is_it = [&](const bj::value& one) { return text_of(one, "feature") == limit.name; };
    const auto found = std::ranges::find_if(missing, is_it);
    if (found == missing.end()) continue;
    return fail(
        Errc::isolation_too_weak,
        limit.flag + ": the " + limit.name + " is not in force: " + text_of(*found, "reason"),
        without_server(text_of(*found, "remedy")) + "; or go without it: --min-isolation weak");
  }
  return {};
}

std::vector<std::string> shortfalls_of(const bj::object& config, const bj::object& isolation) {
  struct Cause {
    std::string what, reason, remedy;
  };
  std::vector<Cause> causes;
  for (const bj::value& one : missing_in(isolation)) {
    Cause cause{text_of(one, "feature"), text_of(one, "reason"), remedy_of(config, isolation, one)};
    const bool is_same = !causes.empty() && causes.back().reason == cause.reason &&
                         causes.back().remedy == cause.remedy;
    if (is_same) {
      causes.back().what += ", " + cause.what;
    } else {
      causes.push_back(std::move(cause));
    }
  }
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = 0; at < causes.size(); ++at) {
    const Cause& cause = causes[at];
    line += (line.empty() ? "not in force: " : "; ") + cause.what + ": " + cause.reason;
    if (at + 1 < causes.size() && causes[at + 1].remedy == cause.remedy) continue;
    lines.push_back(line + (cause.remedy.empty() ? "" : "; fix: " + cause.remedy));
    line.clear();
  }
  return lines;
}

Error for_one_command(Error error) {
  constexpr std::string_view joint = "; ";
  std::vector<std::string> parts;
  std::string rest = without_server(std::move(error.remedy)) + std::string{joint};
  for (std::size_t end = rest.find(joint); end != std::string::npos; end = rest.find(joint)) {
    std::string part = rest.substr(0, end);
    rest.erase(0, end + joint.size());
    const bool is_new = std::ranges::find(parts, part) == parts.end();
    if (is_new && !part.empty()) parts.push_back(std::move(part));
  }
  error.remedy.clear();
  for (const std::string& part : parts) {
    error.remedy += (error.remedy.empty() ? "" : std::string{joint}) + part;
  }
  return error;
}

bool were_told(const std::vector<std::string>& lines, const Variables& variables) {
  constexpr std::size_t file_bytes_max = 1 << 20;
  const auto value = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string{} : found->second;
  };
  std::string folder = value("XDG_STATE_HOME");
  if (folder.empty()) folder = value("HOME").empty() ? "" : value("HOME") + "/.local/state";
  if (folder.empty()) return false;
  const std::string file = folder + "/berth/told";
  std::string told = read_file(file, file_bytes_max).value_or("");
  bool all = true;
  for (const std::string& line : lines) {
    if (("\n" + told).contains("\n" + line + "\n")) continue;
    all = false;
    told += line + "\n";
  }
  if (all) return true;
  // If it cannot be stored, the message is shown again, which does no harm.
  if (make_directories(folder + "/berth", 0700)) static_cast<void>(replace_file(file, told, 0600));
  return false;
}

}  // namespace berth::cli
