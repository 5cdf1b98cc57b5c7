#include "core/config/ssh_config.hpp"

namespace berth {

bj::object FieldForm<core::SecretRef>::schema() {
  constexpr std::string_view uuid =
      "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
  bj::array versions{bj::object{{"type", "string"}, {"enum", bj::array{"latest"}}},
                     bj::object{{"type", "integer"}, {"minimum", 1}}};
  return {{"type", "object"},
          {"format", "secret-ref"},
          {"properties",
           bj::object{{"type", bj::object{{"type", "string"}, {"enum", bj::array{"secret_ref"}}}},
                      {"secretId", bj::object{{"type", "string"}, {"pattern", uuid}}},
                      {"version", bj::object{{"anyOf", std::move(versions)}}}}},
          {"required", bj::array{"type", "secretId"}},
          {"additionalProperties", false}};
}

std::optional<core::SecretRef> FieldForm<core::SecretRef>::read(const bj::value& in,
                                                                const JsonAt& at,
                                                                JsonIssues& issues) {
  return core::parse_secret_ref(in, at, issues);
}

bj::value FieldForm<core::SecretRef>::write(const core::SecretRef& ref) {
  return core::to_json(ref);
}

}  // namespace berth

namespace berth::core {
namespace {

// Characters that end or split a word in ssh's arguments and config files.
bool holds_control(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool splits_words(std::string_view text) {
  return holds_control(text) || text.contains(' ');
}

// ssh treats anything that starts with '-' as an option, even in place of a host or user.
constexpr std::string_view ssh_word = R"(^[^-\x00-\x20\x7f][^\x00-\x20\x7f]*$)";

constexpr TextRule ssh_host{
    .pattern = ssh_word,
    .says = "SSH host must not start with '-', and must not hold blanks or control characters.",
    .wrong = [](std::string_view text) -> std::string_view {
      if (text.starts_with('-')) return "SSH host must not start with '-'.";
      return splits_words(text) ? "SSH host must not hold blanks or control characters." : "";
    }};

constexpr TextRule ssh_username{
    .pattern = ssh_word,
    .says = "SSH username must not start with '-', and must not hold blanks or control characters.",
    .wrong = [](std::string_view text) -> std::string_view {
      if (text.starts_with('-')) return "SSH username must not start with '-'.";
      return splits_words(text) ? "SSH username must not hold blanks or control characters." : "";
    }};

constexpr TextRule ssh_path{
    .pattern = R"(^/[^\x00-\x1f\x7f]*$)",
    .says = "SSH remote workspace path must be absolute, and must not hold control characters.",
    .wrong = [](std::string_view text) -> std::string_view {
      if (!text.starts_with('/')) return "SSH remote workspace path must be absolute.";
      return holds_control(text) ? "SSH remote workspace path must not hold control characters."
                                 : "";
    }};

}  // namespace

Notes<SshConfig> SshConfig::notes() {
  return {{&SshConfig::host,
           {.title = "Host",
            .says = "A name or an address that this server can reach",
            .required = true,
            .rule = &ssh_host,
            .missing = "SSH environments require a host."}},
          {&SshConfig::port,
           {.title = "Port",
            .says = "The port of its SSH server",
            .low = 1,
            .high = 65535,
            .wrong = "is not an integer from 1 to 65535"}},
          {&SshConfig::username,
           {.title = "User",
            .says = "The account on the host",
            .required = true,
            .rule = &ssh_username,
            .missing = "SSH environments require a username."}},
          {&SshConfig::remote_workspace_path,
           {.title = "Folder for work",
            .says = "An absolute path on the host, such as /srv/berth",
            .required = true,
            .rule = &ssh_path,
            .missing = "SSH environments require a remote workspace path."}},
          {&SshConfig::private_key,
           {.title = "Value of the private key",
            .says = "A private key, which becomes a secret",
            .hidden = true}},
          {&SshConfig::private_key_secret_ref,
           {.title = "Private key",
            .says = "The secret with the private key of the account",
            .value_key = "privateKey"}},
          {&SshConfig::known_hosts,
           {.title = "Known hosts",
            .says = "Lines of a known_hosts file; ssh-keyscan prints them",
            .format = "textarea"}},
          {&SshConfig::strict_host_key_checking,
           {.title = "Refuse a host whose key is not known",
            .says = "Connect only where the host key is among the known hosts"}}};
}

}  // namespace berth::core
