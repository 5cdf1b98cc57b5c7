#pragma once

#include "base/json/json.hpp"
#include "base/log.hpp"
#include "base/secret.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::cli {

BOOST_DEFINE_ENUM_CLASS(Mode, local_trusted, authenticated)
// The operator in `local_trusted`: root and the server's own user, or every local user.
BOOST_DEFINE_ENUM_CLASS(TrustedUsers, own, all)
BOOST_DEFINE_ENUM_CLASS(LogLevel, debug, info, warn, error, off)
BOOST_DEFINE_ENUM_CLASS(LogFormat, text, json)
BOOST_DEFINE_ENUM_CLASS(PluginIsolation, none, weak, strong)

// The program's settings. A member is a setting: `body_bytes_max` is the flag --body-bytes-max, the
// variable BERTH_BODY_BYTES_MAX and the key body_bytes_max in the file.
struct Settings {
  std::string home;
  std::string listen = "127.0.0.1:3100";
  std::string database;  // sqlite:PATH or postgresql://...; its variable is BERTH_DATABASE_URL
  Mode mode = Mode::local_trusted;
  TrustedUsers trusted_users = TrustedUsers::own;
  std::vector<std::string> allowed_hosts;  // names that the Host header may contain besides our own
  std::optional<std::string> public_url;
  std::optional<std::string> tls_cert;
  std::optional<std::string> tls_key;
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::json;
  std::int64_t connections_max = 10'000;
  std::int64_t connections_reserved = 32;  // in addition, for administrators and health checks
  std::int64_t streams_per_key = 128;      // event streams and WebSockets
  std::int64_t streams_per_company = 512;
  std::int64_t relays_per_key = 64;  // requests relayed into sandboxes
  std::int64_t relays_per_company = 256;
  std::int64_t body_bytes_max = 1 << 20;
  std::int64_t database_connections = 8;
  std::string master_key_file;
  std::int64_t runs_max = 64;         // concurrent runs of this server
  std::int64_t hold_seconds = 300;    // how long commands survive without a server
  std::int64_t silence_seconds = 30;  // after which another server on the same store is considered
                                      // dead
  std::int64_t image_age_hours = 24;  // of unused images, before they are deleted; 0: never
  // Local folders that plugins may read and write besides their own.
  std::vector<std::string> plugin_folders;
  PluginIsolation plugin_min_isolation = PluginIsolation::weak;
  std::int64_t plugin_files_mb = 1024;        // limit for a plugin's own folder; 0: none
  std::optional<std::string> keeper_program;  // absent: berth-keeper beside this program
};
BOOST_DESCRIBE_STRUCT(Settings, (),
                      (home, listen, database, mode, trusted_users, allowed_hosts, public_url,
                       tls_cert, tls_key, log_level, log_format, connections_max,
                       connections_reserved, streams_per_key, streams_per_company, relays_per_key,
                       relays_per_company, body_bytes_max, database_connections, master_key_file,
                       runs_max, hold_seconds, silence_seconds, image_age_hours, plugin_folders,
                       plugin_min_isolation, plugin_files_mb, keeper_program))

// The settings, the source of each, and the keys that come only from the environment, so that they
// are not in a file or a process list.
struct Config {
  Settings settings;
  std::map<std::string, std::string> sources;  // setting to "--listen", "BERTH_LISTEN", "x.toml:3"
  std::optional<std::string> file;             // the configuration file that was read
  std::vector<std::string> warnings;           // for the user; nothing is ignored silently
  std::optional<Secret> master_key;            // BERTH_MASTER_KEY
  std::optional<Secret> master_key_previous;   // BERTH_MASTER_KEY_PREVIOUS
};

using Variables = std::map<std::string, std::string>;

// The sources of the layers, so that a test can simulate another machine.
struct ConfigInput {
  std::map<std::string, std::string> flags;  // by setting, as typed
  std::optional<std::string> file;           // --config-file
  Variables variables;
  std::string system_file = "/etc/berth/berth.toml";
  uid_t user = 0;
  bool on_terminal = false;
};

// A flag wins over a variable, a variable over the file, the file over the default. Fails with
// config_invalid and the position: "berth.toml:3:1: prot: is not a known setting".
Result<Config> load_config(const ConfigInput& input);

// The flag and the variable of a setting: "--body-bytes-max", "BERTH_BODY_BYTES_MAX".
std::string flag_of(std::string_view setting);
std::string variable_of(std::string_view setting);
// The known text that the user most likely meant; empty when none is close.
std::string closest(std::string_view text, const std::vector<std::string>& known);

// A setting as shown to a user: passwords inside URLs are masked.
struct ShownSetting {
  std::string name;
  std::string value;
  std::string source;
};
BOOST_DESCRIBE_STRUCT(ShownSetting, (), (name, value, source))
std::vector<ShownSetting> show(const Config& config);
std::string mask_password(std::string_view url);

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};
// "127.0.0.1:3100", "[::1]:3100", "localhost:0".
Result<HostPort> parse_listen(std::string_view text);

// A line of help for a setting.
std::string_view explain(std::string_view setting);

}  // namespace berth::cli
