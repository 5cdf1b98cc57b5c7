#pragma once

#include "core/config/bindings.hpp"
#include "core/enums.hpp"

#include <vector>

// The rules of each driver's config: what is accepted, what is stored.
namespace berth::core {

// How a stored config names a secret.
enum class RefShape {
  reference,  // {"type": "secret_ref", ...}
  bare_id,    // the id alone, where a schema says that it is one
};

// A config on its way into the store.
struct ConfigForStore {
  bj::object config;           // in the stored shape: secret ids, never values
  std::vector<BoundRef> refs;  // secrets that the config names
  std::vector<BoundValue>
      values;  // values that must become secrets; then set_secret_ref() puts their ids in
  RefShape shape = RefShape::reference;

  ConfigForStore clone() const;
};

struct SshConfig {
  std::string host;
  std::int64_t port = 22;
  std::string username;
  std::string remote_workspace_path;
  std::optional<std::string> private_key;  // always null in the stored shape
  std::optional<bj::object> private_key_secret_ref;
  std::optional<std::string> known_hosts;
  bool strict_host_key_checking = true;
};
BOOST_DESCRIBE_STRUCT(SshConfig, (),
                      (host, port, username, remote_workspace_path, private_key,
                       private_key_secret_ref, known_hosts, strict_host_key_checking))

struct PluginConfig {
  std::string plugin_key;
  std::string driver_key;
  bj::object driver_config;
};
BOOST_DESCRIBE_STRUCT(PluginConfig, (), (plugin_key, driver_key, driver_config))

// The config that a caller sends, brought into the stored shape. Errors are `unprocessable` with
// one issue per wrong field.
Result<ConfigForStore> normalize_for_store(DriverKind driver, const bj::object& config);
// The same for a draft that is only probed: the built-in `fake`, which is never saved, is fine.
Result<ConfigForStore> normalize_for_probe(DriverKind driver, const bj::object& config);
// Puts the id of a secret that was made for `path` into a config from normalize_for_store.
void set_secret_ref(ConfigForStore& config, const std::string& path, const SecretRef& ref);

// Stored configs, read back. A raw private key in a stored config is refused.
Result<SshConfig> parse_ssh_config(const bj::object& config);
Result<bj::object> parse_sandbox_config(const bj::object& config);
Result<PluginConfig> parse_plugin_config(const bj::object& config);

// The sandbox provider that a config names; "fake" when it names none.
std::string provider_of(const bj::object& sandbox_config);
// `^[a-z0-9][a-z0-9._-]*$`: keys of providers and plugin drivers.
bool is_provider_key(std::string_view key);

// PATCH: which config a new one starts from. The same driver merges key by key, another driver
// starts afresh.
bj::object config_after_patch(DriverKind current, const bj::object& stored,
                              const std::optional<DriverKind>& driver,
                              const std::optional<bj::object>& config);

}  // namespace berth::core
