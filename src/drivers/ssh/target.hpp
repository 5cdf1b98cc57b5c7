#pragma once

#include "base/secret.hpp"
#include "drivers/driver.hpp"
#include "drivers/ssh/options.hpp"

#include <string>

namespace berth::drivers::ssh {

enum class IdentityKind { key, agent, ambient };

// Whom to connect to and as whom. Two leases with equal targets share a connection.
struct Target {
  std::string host;
  std::int64_t port = 22;
  std::string username;
  IdentityKind identity = IdentityKind::key;
  Secret key = {};          // for IdentityKind::key
  std::string known_hosts;  // empty with `ambient`: what the user of this server knows
  bool strict_host_key = true;
  PrivateAddresses private_addresses = PrivateAddresses::refused;

  // "deploy@build-7:22", for sentences.
  std::string name() const { return username + "@" + host + ":" + std::to_string(port); }
  // Equal for equal targets, and says nothing about the key.
  std::string fingerprint() const;
};

// The lease's config and secrets as a target. Fails where ssh would fail or guess: without a key
// that may be used, with one that is none, or strict about a host whose key nobody stated.
Result<Target> target_of(const PlaceRef& lease, const Options& options);

}  // namespace berth::drivers::ssh
