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
// Who is the operator in `local_trusted`: root and the server's own user, or every local user.
BOOST_DEFINE_ENUM_CLASS(TrustedUsers, own, all)
BOOST_DEFINE_ENUM_CLASS(LogLevel, debug, info, warn, error, off)
BOOST_DEFINE_ENUM_CLASS(LogFormat, text, json)
BOOST_DEFINE_ENUM_CLASS(PluginIsolation, none, weak, strong)

// What the program may be told. A member is a setting: `body_bytes_max` is the flag
// --body-bytes-max, the variable BERTH_BODY_BYTES_MAX and the key body_bytes_max of the file.
struct Settings {
  std::string home;
  std::string listen = "127.0.0.1:3100";
  std::string database;  // sqlite:PATH or postgresql://...; its variable is BERTH_DATABASE_URL
  Mode mode = Mode::local_trusted;
  TrustedUsers trusted_users = TrustedUsers::own;
  std::vector<std::string> allowed_hosts;  // names that the Host header may carry besides our own
  std::optional<std::string> public_url;
  std::optional<std::string> tls_cert;
  std::optional<std::string> tls_key;
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::json;
  std::int64_t connections_max = 10'000;
  std::int64_t connections_reserved = 32;  // beyond that, for administrators and health
  std::int64_t streams_per_key = 128;      // event streams and WebSockets
  std::int64_t streams_per_company = 512;
  std::int64_t relays_per_key = 64;  // requests that are passed on into sandboxes
  std::int64_t relays_per_company = 256;
  std::int64_t body_bytes_max = 1 << 20;
  std::int64_t database_connections = 8;
  std::string master_key_file;
  std::int64_t runs_max = 64;         // that this server works on at a time
  std::int64_t hold_seconds = 300;    // how long commands live on without a server
  std::int64_t silence_seconds = 30;  // after which a server that shares the store is given up
  std::int64_t image_age_hours = 24;  // of images that nobody uses, before they go; 0: never
  // Folders of this machine that plugins may read and write besides their own.
  std::vector<std::string> plugin_folders;
  PluginIsolation plugin_min_isolation = PluginIsolation::weak;
  std::int64_t plugin_files_mb = 1024;        // that a plugin may keep in its own folder; 0: any
  std::optional<std::string> keeper_program;  // absent: berth-keeper beside this program
};
BOOST_DESCRIBE_STRUCT(Settings, (),
                      (home, listen, database, mode, trusted_users, allowed_hosts, public_url,
                       tls_cert, tls_key, log_level, log_format, connections_max,
                       connections_reserved, streams_per_key, streams_per_company, relays_per_key,
                       relays_per_company, body_bytes_max, database_connections, master_key_file,
                       runs_max, hold_seconds, silence_seconds, image_age_hours, plugin_folders,
                       plugin_min_isolation, plugin_files_mb, keeper_program))

// The settings, where each came from, and the keys that are taken from the environment alone, so
// that no file and no process list holds them.
struct Config {
  Settings settings;
  std::map<std::string, std::string> sources;  // setting to "--listen", "BERTH_LISTEN", "x.toml:3"
  std::optional<std::string> file;             // the configuration file that was read
  std::vector<std::string> warnings;           // for a person; nothing is ignored silently
  std::optional<Secret> master_key;            // BERTH_MASTER_KEY
  std::optional<Secret> master_key_previous;   // BERTH_MASTER_KEY_PREVIOUS
};

using Variables = std::map<std::string, std::string>;

// What the layers are read from, so that a test can be another machine.
struct ConfigInput {
  std::map<std::string, std::string> flags;  // by setting, as it was typed
  std::optional<std::string> file;           // --config-file
  Variables variables;
  std::string system_file = "/etc/berth/berth.toml";
  uid_t user = 0;
  bool on_terminal = false;
};

// A flag wins over a variable, a variable over the file, the file over the default. The error is
// config_invalid and says where: "berth.toml:3:1: prot: is not a known setting".
Result<Config> load_config(const ConfigInput& input);

// A flag and a variable of a setting: "--body-bytes-max", "BERTH_BODY_BYTES_MAX".
std::string flag_of(std::string_view setting);
std::string variable_of(std::string_view setting);
// The known text that a person most likely meant; empty when none is near.
std::string closest(std::string_view text, const std::vector<std::string>& known);

// A setting as a person may see it: passwords inside URLs are masked.
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
