#pragma once

#include "base/json/config_form.hpp"
#include "core/config/bindings.hpp"

namespace berth {

// `{"type": "secret_ref", "secretId": UUID, "version": "latest" | N}`, as a field of a config.
template <>
struct FieldForm<core::SecretRef> {
  static bj::object schema();
  static std::optional<core::SecretRef> read(const bj::value& in, const JsonAt& at,
                                             JsonIssues& issues);
  static bj::value write(const core::SecretRef& ref);
};

}  // namespace berth

// The config of driver `ssh`: a host, and how its account is reached.
namespace berth::core {

struct SshConfig {
  std::string host;
  std::int64_t port = 22;
  std::string username;
  std::string remote_workspace_path;
  std::optional<Secret> private_key;  // never in stored form
  std::optional<SecretRef> private_key_secret_ref;
  std::optional<std::string> known_hosts;
  bool strict_host_key_checking = true;

  static Notes<SshConfig> notes();
};
BOOST_DESCRIBE_STRUCT(SshConfig, (),
                      (host, port, username, remote_workspace_path, private_key,
                       private_key_secret_ref, known_hosts, strict_host_key_checking))

}  // namespace berth::core
