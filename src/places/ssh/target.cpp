#include "places/ssh/target.hpp"

#include "base/digest.hpp"
#include "core/config/environment_config.hpp"

#include <algorithm>

namespace berth::places::ssh {
namespace {

constexpr const char* key_path = "privateKeySecretRef";

// How every form of a private key begins and ends. Only ssh-keygen can check the rest.
bool is_armored_key(std::string_view text) {
  const std::size_t begin = text.find("-----BEGIN ");
  const std::size_t label = text.find(" PRIVATE KEY-----");
  const std::size_t bare = text.find("-----BEGIN PRIVATE KEY-----");
  const bool has_head = (begin != text.npos && label != text.npos && begin < label) || bare == 0;
  return has_head && text.contains("-----END ");
}

// As ssh requires: every line ends with \n, including the last. Pasted keys often differ.
Secret with_plain_lines(std::string_view text) {
  std::string plain;
  plain.reserve(text.size() + 1);
  for (const char c : text) {
    if (c != '\r') plain += c;
  }
  if (!plain.ends_with('\n')) plain += '\n';
  Secret key{plain};
  ::explicit_bzero(plain.data(), plain.size());
  return key;
}

Result<> take_identity(Target& target, const PlaceRef& lease, const core::SshConfig& config,
                       const Options& options) {
  // A draft contains the value itself and names no secret.
  const auto key = lease.secrets.find(key_path);
  const bool has_value = key != lease.secrets.end();
  if (!config.private_key_secret_ref && !has_value) {
    if (options.agent_socket) {
      target.identity = IdentityKind::agent;
      return {};
    }
    if (options.ambient_identity == AmbientIdentity::allowed) {
      target.identity = IdentityKind::ambient;
      return {};
    }
    return fail(Errc::ssh_auth_failed, target.name() + ": the environment has no private key",
                "give the environment a private key; the keys of the server's own user are not "
                "used unless the server is configured to use them");
  }
  if (!has_value) {
    return fail(Errc::secret_missing, target.name() + ": the value of the private key is missing",
                "check the secret that privateKeySecretRef names");
  }
  if (!is_armored_key(key->second.reveal())) {
    return fail(Errc::ssh_key_invalid, target.name() + ": the given key is not a private key",
                "store the whole file, from -----BEGIN to -----END; not the .pub file");
  }
  target.key = with_plain_lines(key->second.reveal());
  return {};
}

}  // namespace

std::string Target::fingerprint() const {
  std::string all = name();
  for (const std::string_view part :
       {key.reveal(), std::string_view{known_hosts},
        std::string_view{strict_host_key ? "strict" : "lenient"},
        std::string_view{private_addresses == PrivateAddresses::reachable ? "any" : "public"},
        std::string_view{identity == IdentityKind::key ? "key" : "other"}}) {
    all.append(1, '\0').append(sha256_hex(part));
  }
  return sha256_hex(all);
}

Result<Target> target_of(const PlaceRef& lease, const Options& options) {
  BERTH_TRY(const core::SshConfig config, core::parse_ssh_config(lease.config));
  Target target{.host = config.host,
                .port = config.port,
                .username = config.username,
                .known_hosts = config.known_hosts.value_or(""),
                .strict_host_key = config.strict_host_key_checking,
                .private_addresses = lease.private_addresses};
  BERTH_DO(take_identity(target, lease, config, options));
  const bool nothing_known = std::ranges::all_of(
      target.known_hosts, [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; });
  if (target.strict_host_key && nothing_known && target.identity != IdentityKind::ambient) {
    return fail(Errc::ssh_host_key_unknown,
                target.name() + ": host keys are checked, but the environment knows none",
                "put the output of 'ssh-keyscan -p " + std::to_string(target.port) + " " +
                    target.host +
                    "' into knownHosts, after comparing the fingerprint with the "
                    "host's own");
  }
  return target;
}

}  // namespace berth::places::ssh
