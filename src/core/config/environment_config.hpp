#pragma once

#include "core/config/bindings.hpp"
#include "core/config/sandbox_fields.hpp"
#include "core/config/ssh_config.hpp"
#include "core/enums.hpp"

#include <vector>

// The config rules of each driver: what is accepted, and what is stored.
namespace berth::core {

// How a stored config refers to a secret.
enum class RefShape {
  reference,  // {"type": "secret_ref", ...}
  bare_id,    // the id alone, where a schema declares a secret
};

// A config on its way into the store.
struct ConfigForStore {
  bj::object config;           // in stored form: secret ids, never values
  std::vector<BoundRef> refs;  // secrets that the config refers to
  std::vector<BoundValue>
      values;  // values that must become secrets; set_secret_ref() then inserts their ids
  RefShape shape = RefShape::reference;

  ConfigForStore clone() const;
};

// Converts a caller's config to stored form. Errors are `unprocessable` with one issue per invalid
// field.
Result<ConfigForStore> normalize_for_store(DriverKind driver, const bj::object& config);
// The same for a draft that is only probed: the built-in `fake`, which is never saved, is accepted.
Result<ConfigForStore> normalize_for_probe(DriverKind driver, const bj::object& config);
// Inserts the id of a secret that was created for `path` into a config from normalize_for_store.
void set_secret_ref(ConfigForStore& config, const std::string& path, const SecretRef& ref);

// Parses a stored config. A raw private key in a stored config is rejected.
Result<SshConfig> parse_ssh_config(const bj::object& config);
Result<bj::object> parse_sandbox_config(const bj::object& config);
Result<PluginConfig> parse_plugin_config(const bj::object& config);

// The sandbox provider that a config names; "fake" when it names none.
std::string provider_of(const bj::object& sandbox_config);

// For forms: the JSON Schema of a driver's config, and of the built-in `fake`. The providers of
// driver `sandbox` have one each.
bj::object driver_config_schema(DriverKind driver);
bj::object fake_config_schema();

// PATCH: the base config for a change. The same driver merges key by key; another driver starts
// from scratch.
bj::object config_after_patch(DriverKind current, const bj::object& stored,
                              const std::optional<DriverKind>& driver,
                              const std::optional<bj::object>& config);

}  // namespace berth::core
