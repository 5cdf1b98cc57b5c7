#include "core/config/linux_config.hpp"

namespace berth::core {
namespace {

constexpr std::size_t rules_max = 1000;

constexpr std::int64_t day_ms = 86'400'000;

// Absolute and in its shortest spelling, as the sandbox requires.
bool is_clean_path(std::string_view path) {
  const bool plain =
      std::ranges::none_of(path, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (path == "/") return true;
  const std::string closed = std::string{path} + "/";
  return path.starts_with('/') && plain && !closed.contains("//") && !closed.contains("/./") &&
         !closed.contains("/../");
}

constexpr std::string_view clean_path_words =
    "must be an absolute path of the sandbox without '.', '..', double or trailing slashes";

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

constexpr TextRule clean_path{
    .pattern = R"(^/$|^(/([^/.\x00-\x1f\x7f]|\.[^/.\x00-\x1f\x7f]|\.\.[^/\x00-\x1f\x7f]))"
               R"([^/\x00-\x1f\x7f]*)+$)",
    .says = clean_path_words,
    .wrong = [](std::string_view text) -> std::string_view {
      return is_clean_path(text) ? "" : clean_path_words;
    }};

constexpr TextRule named_image{
    .pattern = R"([\s\S])",
    .says = "must be 'host', or the name or digest of an image",
    .wrong = [](std::string_view text) -> std::string_view {
      return text.empty() ? "must be 'host', or the name or digest of an image" : "";
    }};

constexpr TextRule named_template{.pattern = R"([\s\S])",
                                  .says = "must be the name or id of a template",
                                  .wrong = [](std::string_view text) -> std::string_view {
                                    return text.empty() ? "must be the name or id of a template"
                                                        : "";
                                  }};

// The rules that a schema of single fields cannot express.
class BetweenFields {
 public:
  BetweenFields(const LinuxConfig& config, JsonIssues& issues) : config_(config), issues_(issues) {}

  void check() {
    if (config_.workdir) workdir_holds(*config_.workdir);
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

Notes<LinuxEgress> LinuxEgress::notes() {
  return {{&LinuxEgress::allow,
           {.title = "Allow", .says = "What it may reach: host, *.host, host:port or a network"}},
          {&LinuxEgress::deny, {.title = "Deny", .says = "What it may not reach all the same"}},
          {&LinuxEgress::log, {.title = "Log", .says = "Which decisions are recorded"}}};
}

// The fields without `advanced` are those that a newcomer should see.
Notes<LinuxConfig> LinuxConfig::notes() {
  using C = LinuxConfig;
  return {
      {&C::image,
       {.title = "Image",
        .says = "What it starts from: host, or a name or digest from 'berth image list'",
        .rule = &named_image,
        .usual = R"("host")"}},
      {&C::template_,
       {.title = "Template",
        .says = "A captured sandbox to start from, by name or id; the image is then the one below "
                "it",
        .rule = &named_template}},
      {&C::memory_mb,
       {.title = "Memory",
        .says = "Memory of all its processes, in MiB",
        .unit = "MiB",
        .low = 16,
        .high = 1 << 24}},
      {&C::swap_mb,
       {.title = "Swap",
        .says = "Swap beside the memory, in MiB",
        .unit = "MiB",
        .low = 0,
        .high = 1 << 24,
        .advanced = true}},
      {&C::pids,
       {.title = "Processes",
        .says = "Processes and threads at a time",
        .low = 8,
        .high = 1 << 22,
        .advanced = true}},
      {&C::cpus,
       {.title = "Processors", .says = "Processors, also parts of one", .low = 0.01, .high = 4096}},
      {&C::cpu_weight,
       {.title = "Share of processors",
        .says = "Share when processors are scarce",
        .low = 1,
        .high = 10'000,
        .advanced = true}},
      {&C::disk_mb,
       {.title = "Disk",
        .says = "What it may write, in MiB: two thirds below /, one third in /tmp and /dev/shm "
                "together",
        .unit = "MiB",
        .low = 1,
        .high = 1 << 24,
        .advanced = true}},
      {&C::inodes,
       {.title = "Inodes",
        .says = "Files that it may make, divided in the same way",
        .low = 1024,
        .high = 1 << 30,
        .advanced = true}},
      {&C::open_files,
       {.title = "Open files",
        .says = "Open files of one process",
        .low = 64,
        .high = 1 << 20,
        .advanced = true}},
      {&C::timeout_ms,
       {.title = "Timeout", .says = "Longest time of one command", .low = 1, .high = day_ms}},
      {&C::output_mb,
       {.title = "Output",
        .says = "What of the output of one command is kept, in MiB",
        .unit = "MiB",
        .low = 1,
        .high = 1 << 24,
        .advanced = true}},
      {&C::network,
       {.title = "Network",
        .says = "none: only what egress allows; host: the network of this machine"}},
      {&C::egress,
       {.title = "Egress",
        .says = "What it may reach: allow and deny are lists of hosts, log is all, denied or none",
        .advanced = true}},
      {&C::min_isolation,
       {.title = "Min isolation",
        .says = "A sandbox with weaker isolation is refused",
        .advanced = true}},
      {&C::reuse_lease,
       {.title = "Reuse lease",
        .says = "Keep it for the next run, with the files of its working folder"}},
      {&C::workdir,
       {.title = "Working folder",
        .says = "Where commands start; /workspace unless set",
        .advanced = true,
        .rule = &clean_path}},
      {&C::user,
       {.title = "User", .says = "Which user commands are inside of it", .advanced = true}},
      {&C::allow,
       {.title = "Allow", .says = "What is forbidden unless it is listed here", .advanced = true}},
      {&C::pool_size,
       {.title = "Pool size",
        .says = "Sandboxes kept ready before a run asks",
        .low = 0,
        .high = 64,
        .advanced = true}},
      {&C::pool_age_minutes,
       {.title = "Pool age",
        .says = "How old a ready one may get",
        .unit = "minutes",
        .low = 1,
        .high = 10'080,
        .advanced = true}},
      {&C::stream_run_logs,
       {.title = "Stream run logs",
        .says = "Accepted from other servers; here output is always sent as it comes",
        .advanced = true}},
      {&C::archive_on_release,
       {.title = "Archive on release",
        .says = "Accepted from other servers; a sandbox of this machine has no archive",
        .advanced = true}}};
}

Result<LinuxConfig> parse_linux_config(const bj::object& config) {
  const ConfigReading how{.unknown = UnknownKeys::refuse,
                          .prefix = "/config",
                          .code = Errc::unprocessable,
                          .range = RangeWords::both};
  const auto between = [](const LinuxConfig& read, JsonIssues& issues) {
    BetweenFields{read, issues}.check();
  };
  BERTH_TRY(LinuxConfig found,
            read_config<LinuxConfig>(without_nulls<LinuxConfig>(config), how, between));
  found.provider = linux_provider;
  if (!found.image) found.image = "host";
  found.reuse_lease = found.reuse_lease.value_or(false);
  return found;
}

bj::object to_stored(const LinuxConfig& config) {
  return without_nulls<LinuxConfig>(encode(config).as_object());
}

bj::object linux_config_schema() {
  bj::object schema = config_schema<LinuxConfig>(UnknownKeys::refuse);
  schema.at("properties").as_object().erase("provider");
  return schema;
}

}  // namespace berth::core
