#include "cli/config.hpp"

#include "base/files.hpp"
#include "cli/config_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>

#include <unistd.h>

namespace berth::cli {
namespace {

// Variables that are not settings, but that Berth reads or sets for the processes it runs.
constexpr std::array other_variables = {"BERTH_CONFIG",
                                        "BERTH_URL",
                                        "BERTH_TOKEN",
                                        "BERTH_COMPANY",
                                        "BERTH_OUTPUT",
                                        "BERTH_PROFILE",
                                        "BERTH_MASTER_KEY",
                                        "BERTH_MASTER_KEY_PREVIOUS",
                                        "BERTH_API_URL",
                                        "BERTH_API_KEY",
                                        "BERTH_RUNTIME_API_CANDIDATES_JSON",
                                        "BERTH_FAULT_POINT",
                                        "BERTH_FAULT_LOG"};
constexpr std::string_view test_prefix = "BERTH_TEST_";

struct Bounds {
  std::string_view setting;
  std::int64_t low;
  std::int64_t high;
};
constexpr std::array bounds = {
    Bounds{"connections_max", 1, 1'000'000},
    Bounds{"body_bytes_max", 1024, std::int64_t{1} << 30},
    Bounds{"connections_reserved", 1, 1024},
    Bounds{"streams_per_key", 1, 100'000},
    Bounds{"streams_per_company", 1, 100'000},
    Bounds{"relays_per_key", 1, 100'000},
    Bounds{"relays_per_company", 1, 100'000},
    Bounds{"database_connections", 1, 256},
    Bounds{"runs_max", 1, 10'000},
    Bounds{"hold_seconds", 5, 7 * 24 * 3600},
    Bounds{"silence_seconds", 5, 3600},
    Bounds{"image_age_hours", 0, 24 * 365},
    Bounds{"plugin_files_mb", 0, 1 << 24},
};

template <class F>
void for_each_setting(F visit) {
  boost::mp11::mp_for_each<MembersOf<Settings>>(visit);
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for_each_setting([&](auto member) { names.emplace_back(member.name); });
  return names;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t first = item.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    items.emplace_back(item.substr(first, item.find_last_not_of(' ') - first + 1));
  }
  return items;
}

std::unexpected<Error> wrong(const std::string& source, std::string_view setting,
                             const std::string& what, std::string remedy) {
  return fail(Errc::config_invalid, source + ": " + std::string{setting} + ": " + what,
              std::move(remedy));
}

Result<> check_bounds(std::string_view setting, std::int64_t value, const std::string& source) {
  const auto* found = std::ranges::find(bounds, setting, &Bounds::setting);
  if (found == bounds.end() || (value >= found->low && value <= found->high)) return {};
  return wrong(
      source, setting, "is " + std::to_string(value),
      "give a number from " + std::to_string(found->low) + " to " + std::to_string(found->high));
}

// A file with `connections_max = "many"` or `home = 5` gets an error that names the expected type.
template <class T>
Result<> check_type(std::string_view setting, const GivenValue& given) {
  constexpr bool number = std::same_as<T, std::int64_t>;
  constexpr bool list = std::same_as<T, std::vector<std::string>>;
  constexpr Written wanted = number ? Written::as_number
                             : list ? Written::as_list
                                    : Written::as_text;
  if (given.written == Written::untyped || given.written == wanted) return {};
  return wrong(given.source, setting, "has the wrong type",
               number ? "write a whole number without quotes"
               : list ? R"(write a list: ["one", "two"])"
                      : "write text in quotes");
}

template <class T>
Result<T> parse_setting(std::string_view setting, const std::string& text,
                        const std::string& source) {
  if constexpr (std::same_as<T, std::string>) {
    if (text.empty()) return wrong(source, setting, "is empty", "give a value or leave it out");
    return text;
  } else if constexpr (std::same_as<T, std::optional<std::string>>) {
    BERTH_TRY(std::string value, parse_setting<std::string>(setting, text, source));
    return value;
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    return split_list(text);
  } else if constexpr (std::same_as<T, std::int64_t>) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
      return wrong(source, setting, "'" + text.substr(0, 64) + "' is not a whole number",
                   "write it in digits, without a unit");
    }
    BERTH_DO(check_bounds(setting, value, source));
    return value;
  } else {
    const auto value = parse_name<T>(text);
    if (!value) {
      return wrong(source, setting, "is '" + text.substr(0, 64) + "'",
                   "give one of " + names_of<T>());
    }
    return *value;
  }
}

Result<> apply_layer(Config& config, const std::map<std::string, GivenValue>& values) {
  Result<> done;
  for_each_setting([&](auto member) {
    const auto found = values.find(member.name);
    if (!done || found == values.end()) return;
    using T = json_detail::FieldOf<Settings, decltype(member)>;
    const GivenValue& given = found->second;
    done = check_type<T>(member.name, given);
    if (!done) return;
    Result<T> value = parse_setting<T>(member.name, given.text, given.source);
    if (!value) {
      done = std::unexpected(std::move(value).error());
      return;
    }
    config.settings.*member.pointer = *std::move(value);
    config.sources[member.name] = given.source;
  });
  return done;
}

std::map<std::string, GivenValue> from_variables(const Variables& variables) {
  std::map<std::string, GivenValue> values;
  for (const std::string& name : setting_names()) {
    const std::string variable = variable_of(name);
    if (const auto found = variables.find(variable); found != variables.end()) {
      values[name] = {found->second, variable};
    }
  }
  return values;
}

std::map<std::string, GivenValue> from_flags(const std::map<std::string, std::string>& flags) {
  std::map<std::string, GivenValue> values;
  for (const auto& [name, text] : flags) values[name] = {text, flag_of(name)};
  return values;
}

std::optional<std::string> variable(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  if (found == variables.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::string default_home(const ConfigInput& input) {
  if (input.user == 0) return "/var/lib/berth";
  if (const auto shared = variable(input.variables, "XDG_DATA_HOME")) return *shared + "/berth";
  return variable(input.variables, "HOME").value_or("") + "/.local/share/berth";
}

// The file in use: the named one, else the one in the home folder, else the system's.
Result<std::optional<std::string>> find_file(const ConfigInput& input, const std::string& home) {
  if (input.file) return input.file;
  if (auto named = variable(input.variables, "BERTH_CONFIG")) return named;
  for (const std::string& path : {home + "/berth.toml", input.system_file}) {
    if (::access(path.c_str(), F_OK) == 0) return path;
    // A folder that we may not enter may contain a file; it is for the folder's owner, not for us.
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) {
      return fail(Errc::config_invalid, io_failure("look for", path, errno).error().message,
                  "name the file with --config-file");
    }
  }
  return std::nullopt;
}

void warn_of_unknown(const ConfigInput& input, std::vector<std::string>& warnings) {
  if (input.variables.contains("BERTH_RUN_ID")) return;  // a run has many, all of them set by us
  std::vector<std::string> known{other_variables.begin(), other_variables.end()};
  for (const std::string& name : setting_names()) known.push_back(variable_of(name));
  for (const auto& [name, value] : input.variables) {
    if (!name.starts_with("BERTH_") || name.starts_with(test_prefix)) continue;
    if (std::ranges::find(known, name) != known.end()) continue;
    const std::string near = closest(name, known);
    warnings.push_back("the variable " + name + " is not one that Berth knows" +
                       (near.empty() ? "" : "; did you mean " + near + "?"));
  }
}

Result<> check_together(const Settings& settings, const std::map<std::string, std::string>& from) {
  const auto source = [&](const char* name) {
    const auto found = from.find(name);
    return found == from.end() ? std::string{"default"} : found->second;
  };
  if (const auto listen = parse_listen(settings.listen); !listen) {
    return wrong(source("listen"), "listen", listen.error().message, listen.error().remedy);
  }
  if (settings.tls_cert.has_value() != settings.tls_key.has_value()) {
    const char* given = settings.tls_cert ? "tls_cert" : "tls_key";
    return wrong(source(given), given, "is given without its partner",
                 "give tls_cert and tls_key together");
  }
  const std::string& database = settings.database;
  if (!database.starts_with("sqlite:") && !database.starts_with("postgresql://") &&
      !database.starts_with("postgres://")) {
    return wrong(source("database"), "database", "names no database engine",
                 "write sqlite:/path/berth.db or postgresql://user@host/name");
  }
  if (settings.public_url && !settings.public_url->starts_with("http://") &&
      !settings.public_url->starts_with("https://")) {
    return wrong(source("public_url"), "public_url", "is not an http or https address",
                 "write it as https://berth.example.org");
  }
  return {};
}

void take_keys(Config& config, const Variables& variables) {
  if (const auto key = variable(variables, "BERTH_MASTER_KEY")) config.master_key.emplace(*key);
  if (const auto key = variable(variables, "BERTH_MASTER_KEY_PREVIOUS")) {
    config.master_key_previous.emplace(*key);
  }
}

template <class T>
std::string shown(const T& value) {
  if constexpr (std::same_as<T, std::string>) {
    return value;
  } else if constexpr (std::same_as<T, std::optional<std::string>>) {
    return value.value_or("");
  } else if constexpr (std::same_as<T, std::vector<std::string>>) {
    std::string text;
    for (const std::string& item : value) text += (text.empty() ? "" : ", ") + item;
    return text;
  } else if constexpr (std::same_as<T, std::int64_t>) {
    return std::to_string(value);
  } else {
    return std::string{name_of(value)};
  }
}

}  // namespace

std::string flag_of(std::string_view setting) {
  std::string flag = "--" + std::string{setting};
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::string variable_of(std::string_view setting) {
  if (setting == "database") return "BERTH_DATABASE_URL";
  std::string name = "BERTH_";
  for (const char c : setting) name += static_cast<char>(std::toupper(c));
  return name;
}

std::string closest(std::string_view text, const std::vector<std::string>& known) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, text.size() / 4) + 1;
  for (const std::string& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::size_t diagonal = std::exchange(row[0], i + 1);
      for (std::size_t j = 0; j < candidate.size(); ++j) {
        const std::size_t change = diagonal + (text[i] == candidate[j] ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

Result<HostPort> parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::string remedy = "write HOST:PORT, as in 127.0.0.1:3100 or [::1]:3100";
  const auto no = [&] {
    return fail(Errc::config_invalid, "'" + std::string{text} + "' is not a host and port", remedy);
  };
  if (colon == std::string_view::npos || colon == 0) return no();
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  HostPort out;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  if (error != std::errc{} || end != digits.data() + digits.size()) return no();
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return no();
  }
  if (host.empty()) return no();
  out.host = host;
  return out;
}

Result<Config> load_config(const ConfigInput& input) {
  Config config;
  Settings& settings = config.settings;
  for (const std::string& name : setting_names()) config.sources[name] = "default";

  const auto home_flag = input.flags.find("home");
  std::string home = default_home(input);
  if (home_flag != input.flags.end()) {
    home = home_flag->second;
  } else if (const auto named = variable(input.variables, "BERTH_HOME")) {
    home = *named;
  }
  settings.home = home;
  settings.log_format = input.on_terminal ? LogFormat::text : LogFormat::json;

  BERTH_TRY(config.file, find_file(input, home));
  if (config.file) {
    BERTH_TRY(const auto values, read_config_file(*config.file, setting_names()));
    BERTH_DO(apply_layer(config, values));
  }
  BERTH_DO(apply_layer(config, from_variables(input.variables)));
  BERTH_DO(apply_layer(config, from_flags(input.flags)));

  if (settings.database.empty()) settings.database = "sqlite:" + settings.home + "/berth.db";
  if (settings.master_key_file.empty()) settings.master_key_file = settings.home + "/master.key";
  BERTH_DO(check_together(settings, config.sources));
  warn_of_unknown(input, config.warnings);
  take_keys(config, input.variables);
  return config;
}

std::string mask_password(std::string_view url) {
  std::string out{url};
  const std::size_t scheme = out.find("://");
  if (scheme != std::string::npos) {
    const std::size_t start = scheme + 3;
    const std::size_t slash = std::min(out.find_first_of("/?", start), out.size());
    const std::size_t at = out.rfind('@', slash);
    const std::size_t colon = out.find(':', start);
    if (at != std::string::npos && at > start && colon < at) {
      out.replace(colon + 1, at - colon - 1, "****");
    }
  }
  if (const std::size_t key = out.find("password="); key != std::string::npos) {
    const std::size_t start = key + 9;
    out.replace(start, std::min(out.find('&', start), out.size()) - start, "****");
  }
  return out;
}

std::vector<ShownSetting> show(const Config& config) {
  std::vector<ShownSetting> rows;
  for_each_setting([&](auto member) {
    std::string value = shown(config.settings.*member.pointer);
    if (std::string_view{member.name} == "database") value = mask_password(value);
    rows.push_back({member.name, std::move(value), config.sources.at(member.name)});
  });
  const auto key = [&](const char* name, const std::optional<Secret>& secret) {
    rows.push_back({name, secret ? "****" : "", secret ? variable_of(name) : "not set"});
  };
  key("master_key", config.master_key);
  key("master_key_previous", config.master_key_previous);
  return rows;
}

std::string_view explain(std::string_view setting) {
  static const std::map<std::string_view, std::string_view> texts = {
      {"home", "folder of the database, the master key and the tokens"},
      {"listen", "address and port to serve on; port 0 picks a free one"},
      {"database", "sqlite:PATH or postgresql://USER@HOST/NAME"},
      {"mode", "local_trusted (loopback, no tokens) or authenticated"},
      {"trusted_users", "operators in local_trusted: own (root and the server's user) or all"},
      {"allowed_hosts", "further Host names to accept, separated by commas"},
      {"public_url", "the address under which others reach this server"},
      {"tls_cert", "certificate chain in PEM; serves https"},
      {"tls_key", "private key of the certificate in PEM"},
      {"log_level", "debug, info, warn, error or off"},
      {"log_format", "text or json; text on a terminal"},
      {"connections_max", "connections to hold open at once"},
      {"connections_reserved", "further connections for administrators and health"},
      {"streams_per_key", "event streams and WebSockets that one key may have open"},
      {"streams_per_company", "event streams and WebSockets of one company"},
      {"relays_per_key", "requests of one key that are passed on into sandboxes at a time"},
      {"relays_per_company", "requests of one company that are passed on at a time"},
      {"body_bytes_max", "largest request body"},
      {"database_connections", "connections to PostgreSQL"},
      {"runs_max", "runs that this server works on at a time; others wait"},
      {"hold_seconds", "how long running commands live on while no server is there"},
      {"silence_seconds", "after which a server that shares the database is given up"},
      {"image_age_hours", "how long an unused image is kept; 0 keeps it for ever"},
      {"plugin_folders", "folders that plugins may read and write, separated by commas"},
      {"plugin_min_isolation", "none, weak or strong: a plugin whose box is weaker is not started"},
      {"plugin_files_mb", "MiB that a plugin may keep in its own folder; 0 is without a limit"},
      {"keeper_program", "path of berth-keeper, when it is not beside berth"},
      {"master_key_file", "file of the keys that seal secrets"},
  };
  const auto found = texts.find(setting);
  return found == texts.end() ? std::string_view{} : found->second;
}

}  // namespace berth::cli
