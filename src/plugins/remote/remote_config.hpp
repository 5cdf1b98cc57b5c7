#pragma once

#include "base/json/json.hpp"
#include "base/secret.hpp"
#include "plugins/host.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

// What goes into a plugin's call, and what of its answer is kept. Pure.
namespace berth::plugins {

// The config with each secret in the place of its id. A path is of keys and indexes with dots
// between them; what is not there is passed over.
bj::object with_secrets(bj::object config, const std::map<std::string, Secret>& secrets);
// Only the values.
std::vector<Secret> values_of(const std::map<std::string, Secret>& secrets);
// Without what only the host has to know.
bj::object config_for_worker(bj::object config);
// JSON from a plugin on its way to where it is kept: no text in it holds a secret, and every text
// is clean.
bj::value without_secrets(bj::value value, const std::map<std::string, Secret>& secrets);

struct LeaseKeys {
  std::string driver;  // "sandbox" or "plugin"
  std::string driver_key;
  std::string plugin_id;
  std::string plugin_key;
};
// What is stored with a lease. The order is the point: a provider cannot overwrite the config, and
// neither of them the keys of the host.
bj::object lease_metadata(const LeaseKeys& keys, const bj::object& stored_config,
                          const bj::object& provider_metadata);
// The two parts back. Metadata that this host did not write is all the provider's.
bj::object provider_metadata_of(const bj::object& lease_metadata);
std::optional<bj::object> stored_config_of(const bj::object& lease_metadata);
// The mark of a lease on a sandbox that somebody prepares by hand: it has a life of its own.
void mark_setup(bj::object& lease_metadata);
bool is_setup(const bj::object& lease_metadata);

// A positive number of milliseconds at the key; nothing otherwise.
std::optional<std::chrono::milliseconds> milliseconds_at(const bj::object& config,
                                                         std::string_view key);

}  // namespace berth::plugins
