#pragma once

#include "base/json/json.hpp"
#include "core/ids.hpp"

// How a config refers to secrets: `{"type": "secret_ref", "secretId": UUID, "version": "latest" |
// N}`.
namespace berth::core {

struct SecretRef {
  SecretId secret_id;
  std::string version = "latest";  // or a positive number

  friend bool operator==(const SecretRef&, const SecretRef&) = default;
};

// A path in a config that refers to a secret ("privateKeySecretRef", "env.API_KEY").
struct BoundRef {
  std::string path;
  SecretRef ref;
};

// A path in a config where the caller wrote the value itself; it becomes a secret before anything
// is stored.
struct BoundValue {
  std::string path;
  Secret value;
};

bj::object to_json(const SecretRef& ref);
// Adds an issue and returns nothing when the value is not a reference.
std::optional<SecretRef> parse_secret_ref(const bj::value& in, const JsonAt& at,
                                          JsonIssues& issues);

BOOST_DEFINE_ENUM_CLASS(PlainSecrets, allowed, refused)

// Environment variables of an environment or an agent, in canonical form, and the secrets they
// refer to.
struct EnvVars {
  bj::object canonical;
  std::vector<BoundRef> refs;
};

// Accepts a plain string, {"type":"plain","value"} or a secret reference for each name. With
// `refused`, a name that looks like a secret needs a reference.
Result<EnvVars> normalize_env_vars(const bj::object& in, PlainSecrets plain,
                                   std::string_view at = "/envVars");

bool is_env_name(std::string_view name);
// API_KEY, dbPassword, AUTH_TOKEN, ...
bool looks_sensitive(std::string_view name);

}  // namespace berth::core
