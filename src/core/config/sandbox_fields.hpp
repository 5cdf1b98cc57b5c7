#pragma once

#include "base/json/config_form.hpp"

// The configs of sandboxes whose provider is not `linux`, and of places of a plugin's own driver.
namespace berth::core {

// `^[a-z0-9][a-z0-9._-]*$`: keys of providers and plugin drivers.
bool is_provider_key(std::string_view key);
extern const TextRule provider_key_rule;

// What Berth itself knows of any provider's config; all other keys belong to the provider. This is
// also the one reader of these fields in a stored config.
struct SandboxFields {
  std::optional<std::string> provider;
  std::optional<std::int64_t> timeout_ms;
  bool reuse_lease = false;
  std::optional<bool> stream_run_logs;
  std::optional<bool> archive_on_release;

  static Notes<SandboxFields> notes();
};
BOOST_DESCRIBE_STRUCT(SandboxFields, (),
                      (provider, timeout_ms, reuse_lease, stream_run_logs, archive_on_release))

// The built-in `fake`, which is only probed.
struct FakeConfig {
  std::optional<std::string> provider;
  std::string image = "ubuntu:24.04";
  bool reuse_lease = false;
  std::optional<bool> stream_run_logs;
  std::optional<bool> archive_on_release;

  static Notes<FakeConfig> notes();
};
BOOST_DESCRIBE_STRUCT(FakeConfig, (),
                      (provider, image, reuse_lease, stream_run_logs, archive_on_release))

struct PluginConfig {
  std::string plugin_key;
  std::string driver_key;
  bj::object driver_config;

  static Notes<PluginConfig> notes();
};
BOOST_DESCRIBE_STRUCT(PluginConfig, (), (plugin_key, driver_key, driver_config))

// Driver `local` knows no fields; those of a row are kept as they are.
struct LocalConfig {};
BOOST_DESCRIBE_STRUCT(LocalConfig, (), ())

}  // namespace berth::core
