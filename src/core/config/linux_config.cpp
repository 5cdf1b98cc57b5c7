#include "core/config/linux_config.hpp"

#include "base/json/json_schema.hpp"

namespace berth::core {
namespace {

constexpr std::size_t rules_max = 1000;

// One integer field: the same range validates a config and appears in the form schema.
struct Range {
  std::string_view key;
  std::optional<std::int64_t> LinuxConfig::* field;
  std::int64_t low;
  std::int64_t high;
  std::string_view says;
};

constexpr std::int64_t day_ms = 86'400'000;

constexpr Range ranges[] = {
    {"memoryMb", &LinuxConfig::memory_mb, 16, 1 << 24, "Memory of all its processes, in MiB"},
    {"swapMb", &LinuxConfig::swap_mb, 0, 1 << 24, "Swap beside the memory, in MiB"},
    {"pids", &LinuxConfig::pids, 8, 1 << 22, "Processes and threads at a time"},
    {"cpuWeight", &LinuxConfig::cpu_weight, 1, 10'000, "Share when processors are scarce"},
    {"diskMb", &LinuxConfig::disk_mb, 1, 1 << 24,
     "What it may write, in MiB: two thirds below /, one third in /tmp and /dev/shm together"},
    {"inodes", &LinuxConfig::inodes, 1024, 1 << 30,
     "Files that it may make, divided in the same way"},
    {"openFiles", &LinuxConfig::open_files, 64, 1 << 20, "Open files of one process"},
    {"timeoutMs", &LinuxConfig::timeout_ms, 1, day_ms, "Longest time of one command"},
    {"outputMb", &LinuxConfig::output_mb, 1, 1 << 24,
     "What of the output of one command is kept, in MiB"},
    {"poolSize", &LinuxConfig::pool_size, 0, 64, "Sandboxes kept ready before a run asks"},
    {"poolAgeMinutes", &LinuxConfig::pool_age_minutes, 1, 10'080, "How old a ready one may get"},
};
struct Meaning {
  std::string_view key;
  std::string_view says;
};

constexpr Meaning meanings[] = {
    {"image", "What it starts from: host, or a name or digest from 'berth image list'"},
    {"template",
     "A captured sandbox to start from, by name or id; the image is then the one below it"},
    {"network", "none: only what egress allows; host: the network of this machine"},
    {"egress", "What it may reach: allow and deny are lists of hosts, log is all, denied or none"},
    {"minIsolation", "A sandbox with weaker isolation is refused"},
    {"reuseLease", "Keep it for the next run, with the files of its working folder"},
    {"workdir", "Where commands start; /workspace unless set"},
    {"user", "Which user commands are inside of it"},
    {"allow", "What is forbidden unless it is listed here"},
    {"streamRunLogs", "Accepted from other servers; here output is always sent as it comes"},
    {"archiveOnRelease", "Accepted from other servers; a sandbox of this machine has no archive"},
};
constexpr double cpus_low = 0.01;
constexpr double cpus_high = 4096;

// Absolute and in its shortest spelling, as the sandbox requires.
bool is_clean_path(std::string_view path) {
  const bool plain =
      std::ranges::none_of(path, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (path == "/") return true;
  const std::string closed = std::string{path} + "/";
  return path.starts_with('/') && plain && !closed.contains("//") && !closed.contains("/./") &&
         !closed.contains("/../");
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool has_too_many_rules(const LinuxEgress& egress) {
  const auto is_long = [](const auto& rules) { return rules && rules->size() > rules_max; };
  return is_long(egress.allow) || is_long(egress.deny);
}

std::string too_many_rules() {
  return "has more than " + std::to_string(rules_max) + " rules";
}

class Checked {
 public:
  Checked(const LinuxConfig& config, JsonIssues& issues) : config_(config), issues_(issues) {}

  void ranges_hold() {
    for (const Range& range : ranges) {
      const auto& value = config_.*range.field;
      if (!value || (*value >= range.low && *value <= range.high)) continue;
      wrong(range.key,
            "must be from " + std::to_string(range.low) + " to " + std::to_string(range.high));
    }
    if (config_.cpus && !(*config_.cpus >= cpus_low && *config_.cpus <= cpus_high)) {
      wrong("cpus", "must be from 0.01 to 4096");
    }
  }

  void texts_hold() {
    if (config_.image && config_.image->empty()) {
      wrong("image", "must be 'host', or the name or digest of an image");
    }
    if (config_.template_ && config_.template_->empty()) {
      wrong("template", "must be the name or id of a template");
    }
    if (config_.workdir) workdir_holds(*config_.workdir);
  }

  void nothing_contradicts() {
    if (config_.pool_age_minutes && !config_.pool_size) {
      wrong("poolAgeMinutes", "says nothing without poolSize");
    }
    if (config_.network == LinuxNetwork::host && config_.egress) {
      wrong("egress", "cannot be kept with the network of the host; leave network out");
    }
    const Isolation strongest = strongest_isolation(config_);
    if (config_.min_isolation > strongest) {
      wrong("minIsolation", "cannot be " + std::string{name_of(*config_.min_isolation)} +
                                ": with what network and allow open it is " +
                                std::string{name_of(strongest)} + " at most");
    }
    if (config_.egress && has_too_many_rules(*config_.egress)) wrong("egress", too_many_rules());
  }

 private:
  void workdir_holds(std::string_view path) {
    if (!is_clean_path(path)) {
      return wrong("workdir",
                   "must be an absolute path of the sandbox without '.', '..', double or trailing "
                   "slashes");
    }
    for (const std::string_view taken : {"/proc", "/dev", "/sys"}) {
      if (is_below(path, taken)) {
        return wrong("workdir", "lies in " + std::string{taken} + ", which is the sandbox's own");
      }
    }
    const bool on_host = config_.image.value_or("host") == "host" && !config_.template_;
    // On merged-usr systems the others are links into the first.
    for (const std::string_view programs :
         {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
      if (!on_host || !is_below(path, programs)) continue;
      return wrong("workdir", "lies in " + std::string{programs} +
                                  ", which is this machine's own and read-only on image host");
    }
  }
  void wrong(std::string_view key, std::string message) {
    issues_.add(JsonAt{root_, key}, std::move(message));
  }

  const LinuxConfig& config_;
  JsonIssues& issues_;
  JsonAt root_;
};

// The strongest level possible with a weakening. keeper/sandbox/isolation.cpp determines the level
// of an actual sandbox; the provider's plan_test.cpp checks that the two agree.
Isolation left_by(LinuxAllowance allowance) {
  switch (allowance) {
    case LinuxAllowance::ptrace: return Isolation::standard;
    case LinuxAllowance::nested_user_namespaces: break;
  }
  return Isolation::weak;
}

}  // namespace

Isolation strongest_isolation(const LinuxConfig& config) {
  Isolation strongest = Isolation::strong;
  if (config.network == LinuxNetwork::host) strongest = Isolation::weak;
  for (const LinuxAllowance allowance : config.allow.value_or(std::vector<LinuxAllowance>{})) {
    strongest = std::min(strongest, left_by(allowance));
  }
  return strongest;
}

Result<> check_rule_count(const LinuxEgress& egress) {
  if (!has_too_many_rules(egress)) return {};
  return fail(Errc::unprocessable, "The egress policy " + too_many_rules(),
              "say with fewer what may be reached: *.host and networks stand for many");
}

Result<LinuxConfig> parse_linux_config(const bj::object& config) {
  JsonIssues issues{UnknownKeys::refuse, "/config"};
  std::optional<LinuxConfig> found = decode_at<LinuxConfig>(config, JsonAt{}, issues);
  if (found) {
    Checked checked{*found, issues};
    checked.ranges_hold();
    checked.texts_hold();
    checked.nothing_contradicts();
  }
  if (!issues.list().empty() || !found) {
    return std::unexpected(std::move(issues).to_error(Errc::unprocessable));
  }
  found->provider = linux_provider;
  if (!found->image) found->image = "host";
  found->reuse_lease = found->reuse_lease.value_or(false);
  return *std::move(found);
}

bj::object to_stored(const LinuxConfig& config) {
  bj::object all = encode(config).as_object();
  bj::object out;
  for (const auto& [key, value] : all) {
    if (!value.is_null()) out.emplace(key, value);
  }
  if (const bj::value* egress = out.if_contains("egress")) {
    bj::object rules;
    for (const auto& [key, value] : egress->as_object()) {
      if (!value.is_null()) rules.emplace(key, value);
    }
    out["egress"] = std::move(rules);
  }
  return out;
}

bj::object linux_config_schema() {
  SchemaBook book{"#/$defs/"};
  book.schema<LinuxConfig>();
  bj::object components = book.components();
  bj::object schema = components.at("LinuxConfig").as_object();
  components.erase("LinuxConfig");
  bj::object& properties = schema.at("properties").as_object();
  // Absent means the same as null, so the form gets the plain type.
  for (auto& [key, property] : properties) {
    const bj::value plain = property.as_object().at("anyOf").as_array().front();
    property = plain;
  }
  for (const Range& range : ranges) {
    bj::object& property = properties.at(range.key).as_object();
    property["minimum"] = range.low;
    property["maximum"] = range.high;
    property["description"] = range.says;
  }
  bj::object& cpus = properties.at("cpus").as_object();
  cpus["minimum"] = cpus_low;
  cpus["maximum"] = cpus_high;
  cpus["description"] = "Processors, also parts of one";
  properties.at("image").as_object()["default"] = "host";
  for (const Meaning& meaning : meanings) {
    properties.at(meaning.key).as_object()["description"] = meaning.says;
  }
  properties.erase("provider");
  schema["additionalProperties"] = false;
  schema["$defs"] = std::move(components);
  return schema;
}

}  // namespace berth::core
