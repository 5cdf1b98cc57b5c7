#include "core/config/environment_config.hpp"

#include "base/json/peek.hpp"
#include "base/strings.hpp"
#include "core/config/config_path.hpp"
#include "core/config/linux_config.hpp"

namespace berth::core {
namespace {

constexpr std::string_view removed_key = "streamAgentSessionOutput";
ConfigReading own_config() {
  return {.unknown = UnknownKeys::refuse, .prefix = "/config", .code = Errc::unprocessable};
}

Result<ConfigForStore> normalize_ssh(const bj::object& in) {
  BERTH_TRY(SshConfig config, read_config<SshConfig>(as_written<SshConfig>(in), own_config()));
  ConfigForStore out;
  out.config = shown_config(config);
  // A key replaces an older reference.
  if (config.private_key) out.config["privateKeySecretRef"] = nullptr;
  for (const std::string_view key : {"privateKey", "privateKeySecretRef", "knownHosts"}) {
    out.config.emplace(key, nullptr);  // the stored form has every key
  }
  if (config.private_key) {
    out.values.push_back({"privateKeySecretRef", *std::move(config.private_key)});
  } else if (config.private_key_secret_ref) {
    out.refs.push_back({"privateKeySecretRef", *config.private_key_secret_ref});
  }
  return out;
}

Result<ConfigForStore> plugin_for_store(const bj::object& in) {
  BERTH_TRY(const PluginConfig config,
            read_config<PluginConfig>(as_written<PluginConfig>(in), own_config()));
  ConfigForStore out;
  out.config = shown_config(config);
  return out;
}

Result<bj::object> normalize_fake(const bj::object& in) {
  BERTH_TRY(const FakeConfig config,
            read_config<FakeConfig>(as_written<FakeConfig>(in), own_config()));
  bj::object out = shown_config(config);
  out["provider"] = "fake";
  return out;
}

// Keys that Berth does not know belong to the provider and pass through unchanged.
Result<bj::object> normalize_provider(const bj::object& in, const std::string& provider) {
  bj::object out = as_written<SandboxFields>(in);
  out["provider"] = provider;
  BERTH_TRY(const SandboxFields fields,
            read_config<SandboxFields>(out, {.prefix = "/config", .code = Errc::unprocessable}));
  out["reuseLease"] = fields.reuse_lease;
  if (fields.timeout_ms) out["timeoutMs"] = *fields.timeout_ms;
  return out;
}

}  // namespace

std::string provider_of(const bj::object& sandbox_config) {
  const std::optional<std::string> named = peek<std::string>(sandbox_config, "provider");
  const std::string_view key = trimmed(named ? std::string_view{*named} : std::string_view{});
  return std::string{key.empty() ? "fake" : key};
}

Result<bj::object> parse_sandbox_config(const bj::object& config) {
  bj::object in = config;
  in.erase(removed_key);
  const std::string provider = provider_of(in);
  if (provider == "fake") return normalize_fake(in);
  if (provider != linux_provider) return normalize_provider(in, provider);
  BERTH_TRY(const LinuxConfig sandbox, parse_linux_config(in));
  return to_stored(sandbox);
}

Result<SshConfig> parse_ssh_config(const bj::object& config) {
  BERTH_TRY(SshConfig parsed, read_config<SshConfig>(as_written<SshConfig>(config), own_config()));
  if (!parsed.private_key) return parsed;
  return fail(Errc::unprocessable, "a stored SSH config must not hold a private key",
              "save the environment again: the key then becomes a secret");
}

Result<PluginConfig> parse_plugin_config(const bj::object& config) {
  return read_config<PluginConfig>(as_written<PluginConfig>(config), own_config());
}

bj::object driver_config_schema(DriverKind driver) {
  switch (driver) {
    case DriverKind::ssh: return config_schema<SshConfig>(UnknownKeys::refuse);
    case DriverKind::plugin: return config_schema<PluginConfig>(UnknownKeys::refuse);
    case DriverKind::sandbox: return config_schema<SandboxFields>();
    case DriverKind::local: break;
  }
  return config_schema<LocalConfig>();
}

bj::object fake_config_schema() {
  return config_schema<FakeConfig>(UnknownKeys::refuse);
}

Result<ConfigForStore> normalize_for_store(DriverKind driver, const bj::object& config) {
  switch (driver) {
    case DriverKind::local: return ConfigForStore{.config = config, .refs = {}, .values = {}};
    case DriverKind::ssh: return normalize_ssh(config);
    case DriverKind::plugin: return plugin_for_store(config);
    case DriverKind::sandbox: break;
  }
  BERTH_TRY(bj::object sandbox, parse_sandbox_config(config));
  if (provider_of(sandbox) == "fake") {
    return fail(
        Errc::unprocessable,
        "Built-in fake sandbox environments are reserved for internal probes and cannot be saved.",
        "name another provider in /config/provider");
  }
  return ConfigForStore{.config = std::move(sandbox), .refs = {}, .values = {}};
}

Result<ConfigForStore> normalize_for_probe(DriverKind driver, const bj::object& config) {
  const bool is_fake = driver == DriverKind::sandbox && provider_of(config) == "fake";
  if (!is_fake) return normalize_for_store(driver, config);
  BERTH_TRY(bj::object sandbox, parse_sandbox_config(config));
  return ConfigForStore{.config = std::move(sandbox), .refs = {}, .values = {}};
}

void set_secret_ref(ConfigForStore& config, const std::string& path, const SecretRef& ref) {
  const bool bare = config.shape == RefShape::bare_id;
  set_at(config.config, ConfigPath::parse(path),
         bare ? bj::value(ref.secret_id.str()) : bj::value(to_json(ref)));
  config.refs.push_back({path, ref});
}

ConfigForStore ConfigForStore::clone() const {
  ConfigForStore copy{.config = config, .refs = refs, .values = {}, .shape = shape};
  for (const BoundValue& bound : values) {
    copy.values.push_back({bound.path, Secret{bound.value.reveal()}});
  }
  return copy;
}

bj::object config_after_patch(DriverKind current, const bj::object& stored,
                              const std::optional<DriverKind>& driver,
                              const std::optional<bj::object>& config) {
  const bool changed = driver && *driver != current;
  if (changed) return config.value_or(bj::object{});
  bj::object merged = stored;
  if (config) {
    for (const auto& [key, value] : *config) merged[key] = value;
  }
  return merged;
}

}  // namespace berth::core
