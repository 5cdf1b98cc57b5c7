#include "cli/sandbox_shortfall.hpp"

#include "cli/objects.hpp"
#include "keeper/sandbox/cgroup_settings.hpp"

#include <algorithm>
#include <cmath>

namespace berth::cli {
namespace {

using keeper::sandbox::Limits;
using keeper::sandbox::Setting;

// A limit by the flag that asks for it and by the name that a keeper misses it under.
struct NamedLimit {
  std::string flag;
  std::string name;
};

// Of a limit that means several settings, the first is the one that it is named after.
std::string name_of_only(const Limits& limits) {
  const std::vector<Setting> settings = keeper::sandbox::settings_of(limits);
  return settings.empty() ? "" : settings.front().limit;
}

std::vector<NamedLimit> limits_in(const bj::object& config) {
  std::vector<NamedLimit> out;
  if (const bj::value* mb = config.if_contains("memoryMb")) {
    const Limits only{.memory_bytes = mb->to_number<std::uint64_t>() << 20};
    out.push_back({"--memory", name_of_only(only)});
  }
  if (const bj::value* pids = config.if_contains("pids")) {
    out.push_back({"--pids", name_of_only({.pids = pids->to_number<std::uint32_t>()})});
  }
  if (const bj::value* cpus = config.if_contains("cpus")) {
    const auto millis = static_cast<std::uint32_t>(std::lround(cpus->to_number<double>() * 1000));
    out.push_back({"--cpus", name_of_only({.cpu_millis = millis})});
  }
  return out;
}

bj::array missing_in(const bj::object& isolation) {
  const bj::value* missing = isolation.if_contains("missing");
  return missing != nullptr && missing->is_array() ? missing->get_array() : bj::array{};
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
        text_of(*found, "remedy") + "; or go without it: --min-isolation weak");
  }
  return {};
}

std::vector<std::string> shortfalls_of(const bj::object& isolation) {
  struct Cause {
    std::string what, reason, remedy;
  };
  std::vector<Cause> causes;
  for (const bj::value& one : missing_in(isolation)) {
    Cause cause{text_of(one, "feature"), text_of(one, "reason"), text_of(one, "remedy")};
    const bool is_same = !causes.empty() && causes.back().reason == cause.reason &&
                         causes.back().remedy == cause.remedy;
    if (is_same) {
      causes.back().what += ", " + cause.what;
    } else {
      causes.push_back(std::move(cause));
    }
  }
  std::vector<std::string> lines;
  for (const Cause& cause : causes) {
    const std::string fix = cause.remedy.empty() ? "" : "; fix: " + cause.remedy;
    lines.push_back("not in force: " + cause.what + ": " + cause.reason + fix);
  }
  return lines;
}

}  // namespace berth::cli
