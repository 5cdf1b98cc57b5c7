#pragma once

#include "base/json/json.hpp"
#include "base/secret.hpp"
#include "places/remote/transport.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

// What is put into a plugin's call, and what is kept of its response. Pure.
namespace berth::places::remote {

// The config with each secret in place of its id. A path consists of keys and indexes separated by
// dots; missing paths are ignored.
bj::object with_secrets(bj::object config, const std::map<std::string, Secret>& secrets);
// Only the values.
std::vector<Secret> values_of(const std::map<std::string, Secret>& secrets);
// Without the fields that only the host needs.
bj::object config_for_worker(bj::object config);
// A plugin's JSON before it is stored: no string in it contains a secret, and every string is
// valid.
bj::value without_secrets(bj::value value, const std::map<std::string, Secret>& secrets);

struct LeaseKeys {
  std::string driver;  // "sandbox" or "plugin"
  std::string driver_key;
  std::string plugin_id;
  std::string plugin_key;
};
// What is stored with a lease. The order matters: a provider cannot overwrite the config, and
// neither can overwrite the host's keys.
bj::object lease_metadata(const LeaseKeys& keys, const bj::object& stored_config,
                          const bj::object& provider_metadata);
// The two parts again. Metadata that this host did not write belongs to the provider.
bj::object provider_metadata_of(const bj::object& lease_metadata);
std::optional<bj::object> stored_config_of(const bj::object& lease_metadata);
// Marks the lease of a sandbox that a user prepares by hand; its lifetime is its own.
void mark_setup(bj::object& lease_metadata);
bool is_setup(const bj::object& lease_metadata);

// A positive number of milliseconds at the key; nothing otherwise.
std::optional<std::chrono::milliseconds> milliseconds_at(const bj::object& config,
                                                         std::string_view key);

}  // namespace berth::places::remote
