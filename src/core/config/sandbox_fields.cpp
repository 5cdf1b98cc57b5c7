#include "core/config/sandbox_fields.hpp"

#include "base/strings.hpp"

namespace berth::core {
namespace {

constexpr std::string_view key_words =
    "must start with a lower-case letter or digit and hold only those, '.', '-' and '_'";

constexpr TextRule fake_image{
    .pattern = R"([^ \t\r\n\v\f])",
    .says = "Fake sandbox environments require an image.",
    .wrong = [](std::string_view text) -> std::string_view {
      return trimmed(text).empty() ? "Fake sandbox environments require an image." : "";
    }};

}  // namespace

bool is_provider_key(std::string_view key) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c); };
  if (key.empty() || !plain(key.front())) return false;
  return std::ranges::all_of(key,
                             [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; });
}

constexpr TextRule provider_key_rule{.pattern = "^[a-z0-9][a-z0-9._-]*$",
                                     .says = key_words,
                                     .wrong = [](std::string_view text) -> std::string_view {
                                       return is_provider_key(text) ? "" : key_words;
                                     }};

Notes<SandboxFields> SandboxFields::notes() {
  return {{&SandboxFields::provider, {.title = "Provider", .rule = &provider_key_rule}},
          {&SandboxFields::timeout_ms,
           {.title = "Timeout",
            .says = "Longest time of one command, in milliseconds",
            .low = 1,
            .high = 86'400'000,
            .wrong = "is not an integer from 1 to 86400000"}},
          {&SandboxFields::reuse_lease,
           {.title = "Reuse lease", .says = "Keep the sandbox for the next run"}}};
}

Notes<FakeConfig> FakeConfig::notes() {
  return {{&FakeConfig::provider, {.title = "Provider", .hidden = true}},
          {&FakeConfig::image,
           {.title = "Image", .says = "A label; nothing is started from it", .rule = &fake_image}},
          {&FakeConfig::reuse_lease,
           {.title = "Reuse lease", .says = "Keep the sandbox for the next run"}}};
}

Notes<PluginConfig> PluginConfig::notes() {
  return {{&PluginConfig::plugin_key,
           {.title = "Plugin",
            .says = "The key of the plugin",
            .required = true,
            .missing = "Plugin environments require a plugin key."}},
          {&PluginConfig::driver_key,
           {.title = "Driver",
            .says = "The key of its driver",
            .required = true,
            .rule = &provider_key_rule,
            .missing = "Plugin environments require a driver key."}},
          {&PluginConfig::driver_config,
           {.title = "Config of the driver",
            .says = "What the driver's own schema describes",
            .hidden = true}}};
}

}  // namespace berth::core
