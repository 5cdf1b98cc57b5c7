#include "core/config/environment_config.hpp"

#include "core/config/config_path.hpp"
#include "core/config/linux_config.hpp"

#include <charconv>

namespace berth::core {
namespace {

constexpr std::string_view removed_key = "streamAgentSessionOutput";
constexpr std::int64_t timeout_ms_max = 86'400'000;

std::string trimmed_text(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return std::string{text.substr(first, text.find_last_not_of(blanks) - first + 1)};
}

// Reads one config object field by field, and records each invalid field by its pointer below
// /config.
class Reader {
 public:
  explicit Reader(const bj::object& in) : in_(in) {}

  const bj::value* find(std::string_view key) const { return in_.if_contains(key); }
  const bj::value* given(std::string_view key) const {
    const bj::value* value = find(key);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }

  void wrong(std::string_view key, std::string message) {
    issues_.add(JsonAt{config_, key}, std::move(message));
  }

  // A trimmed string; empty when it is absent, null or blank.
  std::optional<std::string> text(std::string_view key) {
    const bj::value* value = given(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) {
      wrong(key, "is not a string");
      return std::nullopt;
    }
    std::string found = trimmed_text(value->get_string());
    return found.empty() ? std::nullopt : std::optional{std::move(found)};
  }

  std::string required(std::string_view key, std::string sentence) {
    const bj::value* value = given(key);
    if (value != nullptr && !value->is_string()) {
      wrong(key, "is not a string");
      return {};
    }
    std::string found = value != nullptr ? trimmed_text(value->get_string()) : std::string{};
    if (found.empty()) wrong(key, std::move(sentence));
    return found;
  }

  // An integer, or a string that holds one: forms send both.
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high) {
    const bj::value* value = given(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) {
      return json_detail::decode_integer(*value, low, high, JsonAt{config_, key}, issues_);
    }
    std::int64_t number = 0;
    const std::string text = trimmed_text(value->get_string());
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc{} && stop == end && number >= low && number <= high) return number;
    wrong(key, "is not an integer from " + std::to_string(low) + " to " + std::to_string(high));
    return std::nullopt;
  }

  std::optional<bool> flag(std::string_view key) {
    const bj::value* value = given(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_bool()) return value->get_bool();
    wrong(key, "is not a boolean");
    return std::nullopt;
  }

  std::optional<SecretRef> secret_ref(std::string_view key) {
    const bj::value* value = given(key);
    if (value == nullptr) return std::nullopt;
    return parse_secret_ref(*value, JsonAt{config_, key}, issues_);
  }

  void only(std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : in_) {
      const std::string_view name = key;
      if (std::ranges::find(known, name) == known.end()) wrong(name, "is not a known field");
    }
  }

  // The first issue becomes the message; all of them are listed.
  Result<> finish() && {
    if (issues_.list().empty()) return {};
    return std::unexpected(std::move(issues_).to_error(Errc::unprocessable));
  }

 private:
  const bj::object& in_;
  JsonAt root_;
  JsonAt config_{root_, "config"};
  JsonIssues issues_;
};

bj::value or_null(const std::optional<std::string>& text) {
  return text ? bj::value(bj::string(*text)) : bj::value(nullptr);
}

// Characters that end or split a word in ssh's arguments and config files.
bool holds_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Result<ConfigForStore> normalize_ssh(const bj::object& in) {
  Reader read{in};
  read.only({"host", "port", "username", "remoteWorkspacePath", "privateKey", "privateKeySecretRef",
             "knownHosts", "strictHostKeyChecking"});
  const std::string host = read.required("host", "SSH environments require a host.");
  const std::string username = read.required("username", "SSH environments require a username.");
  const std::string path =
      read.required("remoteWorkspacePath", "SSH environments require a remote workspace path.");
  if (!path.empty() && path.front() != '/') {
    read.wrong("remoteWorkspacePath", "SSH remote workspace path must be absolute.");
  }
  // ssh treats anything that starts with '-' as an option, even in place of a host or user.
  if (host.starts_with('-')) read.wrong("host", "SSH host must not start with '-'.");
  if (username.starts_with('-')) read.wrong("username", "SSH username must not start with '-'.");
  if (holds_control(host) || host.contains(' ')) {
    read.wrong("host", "SSH host must not hold blanks or control characters.");
  }
  if (holds_control(username) || username.contains(' ')) {
    read.wrong("username", "SSH username must not hold blanks or control characters.");
  }
  if (holds_control(path)) {
    read.wrong("remoteWorkspacePath",
               "SSH remote workspace path must not hold control characters.");
  }
  const std::int64_t port = read.integer("port", 1, 65535).value_or(22);
  const auto key = read.text("privateKey");
  const auto ref = read.secret_ref("privateKeySecretRef");
  const auto known_hosts = read.text("knownHosts");
  const bool strict = read.flag("strictHostKeyChecking").value_or(true);
  BERTH_DO(std::move(read).finish());

  ConfigForStore out;
  out.config = {{"host", host},
                {"port", port},
                {"username", username},
                {"remoteWorkspacePath", path},
                {"privateKey", nullptr},
                {"privateKeySecretRef", nullptr},
                {"knownHosts", or_null(known_hosts)},
                {"strictHostKeyChecking", strict}};
  if (key) {
    out.values.push_back({"privateKeySecretRef", Secret{*key}});
  } else if (ref) {
    out.config["privateKeySecretRef"] = to_json(*ref);
    out.refs.push_back({"privateKeySecretRef", *ref});
  }
  return out;
}

Result<ConfigForStore> normalize_plugin(const bj::object& in) {
  Reader read{in};
  read.only({"pluginKey", "driverKey", "driverConfig"});
  const std::string plugin =
      read.required("pluginKey", "Plugin environments require a plugin key.");
  const std::string driver =
      read.required("driverKey", "Plugin environments require a driver key.");
  if (!driver.empty() && !is_provider_key(driver)) {
    read.wrong(
        "driverKey",
        "must start with a lower-case letter or digit and hold only those, '.', '-' and '_'");
  }
  const bj::value* driver_config = read.given("driverConfig");
  if (driver_config != nullptr && !driver_config->is_object())
    read.wrong("driverConfig", "is not an object");
  BERTH_DO(std::move(read).finish());
  ConfigForStore out;
  out.config = {
      {"pluginKey", plugin},
      {"driverKey", driver},
      {"driverConfig", driver_config != nullptr ? *driver_config : bj::value(bj::object{})}};
  return out;
}

Result<bj::object> normalize_fake(const bj::object& in) {
  Reader read{in};
  read.only({"provider", "image", "reuseLease", "streamRunLogs", "archiveOnRelease"});
  read.text("provider");  // a number is not a provider name, not even of the default one
  std::string image = "ubuntu:24.04";
  if (read.find("image") != nullptr) {
    image = read.required("image", "Fake sandbox environments require an image.");
  }
  const bool reuse = read.flag("reuseLease").value_or(false);
  const auto stream = read.flag("streamRunLogs");
  const auto archive = read.flag("archiveOnRelease");
  BERTH_DO(std::move(read).finish());
  bj::object out{{"provider", "fake"}, {"image", image}, {"reuseLease", reuse}};
  if (stream) out["streamRunLogs"] = *stream;
  if (archive) out["archiveOnRelease"] = *archive;
  return out;
}

// Berth knows a few fields of a provider's config; all other keys belong to the provider and pass
// through unchanged.
Result<bj::object> normalize_provider(const bj::object& in, const std::string& provider) {
  Reader read{in};
  if (!is_provider_key(provider)) {
    read.wrong(
        "provider",
        "must start with a lower-case letter or digit and hold only those, '.', '-' and '_'");
  }
  const auto timeout_ms = read.integer("timeoutMs", 1, timeout_ms_max);
  const bool reuse = read.flag("reuseLease").value_or(false);
  read.flag("streamRunLogs");
  read.flag("archiveOnRelease");
  BERTH_DO(std::move(read).finish());
  bj::object out = in;
  for (const std::string_view ours : {"timeoutMs", "streamRunLogs", "archiveOnRelease"}) {
    if (const bj::value* value = out.if_contains(ours); value != nullptr && value->is_null()) {
      out.erase(ours);  // null means absent; the stored form uses only absence
    }
  }
  out["provider"] = provider;
  out["reuseLease"] = reuse;
  if (timeout_ms) out["timeoutMs"] = *timeout_ms;
  return out;
}

}  // namespace

bool is_provider_key(std::string_view key) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (key.empty() || !plain(key.front())) return false;
  return std::ranges::all_of(key,
                             [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; });
}

std::string provider_of(const bj::object& sandbox_config) {
  const bj::value* value = sandbox_config.if_contains("provider");
  std::string key = value != nullptr && value->is_string() ? trimmed_text(value->get_string()) : "";
  return key.empty() ? "fake" : key;
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
  BERTH_TRY(const ConfigForStore normal, normalize_ssh(config));
  if (!normal.values.empty()) {
    return fail(Errc::unprocessable, "a stored SSH config must not hold a private key",
                "save the environment again: the key then becomes a secret");
  }
  return decode<SshConfig>(normal.config);
}

Result<PluginConfig> parse_plugin_config(const bj::object& config) {
  BERTH_TRY(const ConfigForStore normal, normalize_plugin(config));
  return decode<PluginConfig>(normal.config);
}

Result<ConfigForStore> normalize_for_store(DriverKind driver, const bj::object& config) {
  switch (driver) {
    case DriverKind::local: return ConfigForStore{.config = config, .refs = {}, .values = {}};
    case DriverKind::ssh: return normalize_ssh(config);
    case DriverKind::plugin: return normalize_plugin(config);
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
