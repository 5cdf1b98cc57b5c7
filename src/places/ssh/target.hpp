#pragma once

#include "base/secret.hpp"
#include "places/place.hpp"
#include "places/ssh/options.hpp"

#include <string>

namespace berth::places::ssh {

enum class IdentityKind { key, agent, ambient };

// Where to connect and as which user. Leases with equal targets share a connection.
struct Target {
  std::string host;
  std::int64_t port = 22;
  std::string username;
  IdentityKind identity = IdentityKind::key;
  Secret key = {};          // for IdentityKind::key
  std::string known_hosts;  // empty with `ambient`: the server user's own
  bool strict_host_key = true;
  PrivateAddresses private_addresses = PrivateAddresses::refused;

  // "deploy@build-7:22", for messages.
  std::string name() const { return username + "@" + host + ":" + std::to_string(port); }
  // Equal for equal targets; reveals nothing about the key.
  std::string fingerprint() const;
};

// The lease's config and secrets as a target. Fails where ssh would fail or guess: without a usable
// key, with a malformed one, or with strict checking of a host whose key is not given.
Result<Target> target_of(const PlaceRef& lease, const Options& options);

}  // namespace berth::places::ssh
