#include "places/remote/remote_config.hpp"

#include "base/json/peek.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace berth::places::remote {
namespace {

constexpr auto host_only_keys = std::to_array<std::string_view>(
    {"provider", "driver", "executionWorkspaceMode", "pluginId", "pluginKey", "providerMetadata",
     "providerConfig", "remoteCwd", "shellCommand", "sandboxProviderPlugin"});
constexpr std::string_view setup_mark = "interactiveSetup";
constexpr std::size_t shortest_secret = 4;  // a shorter one occurs in too many words
constexpr std::int64_t milliseconds_max = 86'400'000;

bj::value* step(bj::value& at, std::string_view key) {
  if (bj::object* object = at.if_object()) {
    const auto field = object->find(key);
    return field != object->end() ? &field->value() : nullptr;
  }
  bj::array* array = at.if_array();
  if (array == nullptr) return nullptr;
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  const bool whole = error == std::errc{} && end == key.data() + key.size();
  return whole && index < array->size() ? &(*array)[index] : nullptr;
}

bj::value* find_path(bj::value& root, std::string_view path) {
  bj::value* at = &root;
  while (at != nullptr && !path.empty()) {
    const std::string_view key = path.substr(0, path.find('.'));
    at = step(*at, key);
    path.remove_prefix(std::min(key.size() + 1, path.size()));
  }
  return at;
}

}  // namespace

bj::object with_secrets(bj::object config, const std::map<std::string, Secret>& secrets) {
  bj::value root(std::move(config));  // braces would make a list of it
  for (const auto& [path, secret] : secrets) {
    bj::value* place = path.empty() ? nullptr : find_path(root, path);
    if (place != nullptr && place != &root) *place = bj::string(secret.reveal());
  }
  return std::move(root.get_object());
}

std::vector<Secret> values_of(const std::map<std::string, Secret>& secrets) {
  std::vector<Secret> out;
  for (const auto& [path, secret] : secrets) out.push_back(secret.clone());
  return out;
}

bj::object config_for_worker(bj::object config) {
  for (const std::string_view key : host_only_keys) config.erase(key);
  return config;
}

bj::value without_secrets(bj::value value, const std::map<std::string, Secret>& secrets) {
  if (bj::object* object = value.if_object()) {
    for (auto& entry : *object) {
      entry.value() = without_secrets(std::move(entry.value()), secrets);
    }
  } else if (bj::array* array = value.if_array()) {
    for (bj::value& entry : *array) entry = without_secrets(std::move(entry), secrets);
  } else if (const bj::string* text = value.if_string()) {
    const std::string_view view{text->data(), text->size()};
    const bool leaks = std::ranges::any_of(secrets, [&](const auto& entry) {
      const std::string_view secret = entry.second.reveal();
      return secret.size() >= shortest_secret && view.contains(secret);
    });
    if (leaks) return "[secret]";
  }
  return value;
}

bj::object lease_metadata(const LeaseKeys& keys, const bj::object& stored_config,
                          const bj::object& provider_metadata) {
  bj::object out = provider_metadata;
  for (const auto& entry : stored_config) out.insert_or_assign(entry.key(), entry.value());
  out["driver"] = keys.driver;
  out["provider"] = keys.driver_key;
  out["pluginId"] = keys.plugin_id;
  out["pluginKey"] = keys.plugin_key;
  out["sandboxProviderPlugin"] = true;
  out["reuseLease"] = is_true_in(stored_config, "reuseLease");
  out["providerMetadata"] = provider_metadata;
  out["providerConfig"] = stored_config;
  out.erase(setup_mark);
  return out;
}

bj::object provider_metadata_of(const bj::object& lease_metadata) {
  if (const bj::object* own = object_in(lease_metadata, "providerMetadata")) return *own;
  bj::object all = lease_metadata;
  all.erase("leaseFacts");  // these belong to the host
  return all;
}

std::optional<bj::object> stored_config_of(const bj::object& lease_metadata) {
  return peek<bj::object>(lease_metadata, "providerConfig");
}

void mark_setup(bj::object& lease_metadata) {
  lease_metadata[setup_mark] = true;
}

bool is_setup(const bj::object& lease_metadata) {
  return is_true_in(lease_metadata, setup_mark);
}

std::optional<std::chrono::milliseconds> milliseconds_at(const bj::object& config,
                                                         std::string_view key) {
  const auto number = peek<double>(config, key);
  if (!number || !std::isfinite(*number) || *number < 1) return std::nullopt;
  return std::chrono::milliseconds{
      static_cast<std::int64_t>(std::min(*number, static_cast<double>(milliseconds_max)))};
}

}  // namespace berth::places::remote
