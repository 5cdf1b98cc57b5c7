#include "places/ssh/diagnosis.hpp"

#include "base/strings.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>

namespace berth::places::ssh {
namespace {

constexpr std::size_t words_max = 300;

struct Cause {
  std::string_view said;  // a part of the text
  Errc code;
  std::string_view means;
};

// In this order: if several apply, the first is the most specific.
constexpr auto causes = std::to_array<Cause>({
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", Errc::ssh_host_key_changed,
     "the host shows another key than the one that is known"},
    {"REVOKED HOST KEY", Errc::ssh_host_key_changed, "the host shows a key that is revoked"},
    {"host key is known for", Errc::ssh_host_key_unknown, "the host key is not known"},
    {"Host key verification failed", Errc::ssh_host_key_unknown,
     "the key of the host could not be checked"},
    {"Load key", Errc::ssh_key_invalid, "the private key cannot be read"},
    {"incorrect passphrase", Errc::ssh_key_invalid, "the private key has a passphrase"},
    {"invalid format", Errc::ssh_key_invalid, "the private key cannot be read"},
    {"error in libcrypto", Errc::ssh_key_invalid, "the private key cannot be read"},
    {"Permission denied", Errc::ssh_auth_failed, "the host does not accept the private key"},
    {"Too many authentication failures", Errc::ssh_auth_failed,
     "the host accepts none of the keys"},
    {"Could not resolve hostname", Errc::ssh_unreachable, "the name of the host is not known"},
    {"Connection refused", Errc::ssh_unreachable, "nothing listens on that port"},
    {"No route to host", Errc::ssh_unreachable, "no route leads to the host"},
    {"Network is unreachable", Errc::ssh_unreachable, "no route leads to the host"},
    {"during banner exchange", Errc::ssh_unreachable, "something listens there but does not speak"},
    {"timed out", Errc::ssh_unreachable, "the host does not answer"},
    {"Timeout, server", Errc::ssh_unreachable, "the host does not answer any more"},
    {"kex_exchange_identification", Errc::ssh_unreachable, "the host hung up before a word of SSH"},
    {"Connection reset", Errc::ssh_unreachable, "the connection was reset"},
    {"Connection closed", Errc::ssh_unreachable, "the host closed the connection"},
    {"Broken pipe", Errc::ssh_unreachable, "the connection broke"},
});

std::string remedy_for(Errc code, const Whom& whom) {
  const std::string port = std::to_string(whom.port);
  switch (code) {
    case Errc::ssh_host_key_changed:
      return "if the host was set up anew, compare its fingerprint and put the output of "
             "'ssh-keyscan -p " +
             port + " " + whom.host +
             "' into knownHosts; if it was not, "
             "the connection may be intercepted";
    case Errc::ssh_host_key_unknown:
      return "put the output of 'ssh-keyscan -p " + port + " " + whom.host +
             "' into knownHosts, after comparing the fingerprint with the host's own";
    case Errc::ssh_auth_failed:
      return "check the user name, and that authorized_keys of that user holds the public half of "
             "the key";
    case Errc::ssh_key_invalid:
      return "store a private key in OpenSSH or PEM form, without a passphrase";
    case Errc::ssh_unreachable:
      return "check host and port, and that this server may connect there: 'ssh -p " + port + " " +
             whom.host + "'";
    default: return "try the same with 'ssh -v' as the user of this server";
  }
}

}  // namespace

std::string last_words(std::string_view said) {
  while (!said.empty()) {
    const std::size_t newline = said.find_last_of('\n');
    const std::size_t start = newline == said.npos ? 0 : newline + 1;
    const std::string_view line = trimmed(said.substr(start));
    if (!line.empty()) return as_utf8(clipped(line, words_max));
    if (newline == said.npos) break;
    said = said.substr(0, newline);
  }
  return "";
}

Error why_not_connected(const Whom& whom, std::string_view said) {
  const auto* cause =
      std::ranges::find_if(causes, [&](const Cause& c) { return said.contains(c.said); });
  const std::string words = last_words(said);
  // If the host disconnects during the login, ssh prints nothing.
  if (words.empty()) {
    return {Errc::ssh_unreachable, whom.name + ": the connection ended during the login",
            remedy_for(Errc::ssh_unreachable, whom)};
  }
  const std::string tail = " (" + words + ")";
  if (cause == causes.end()) {
    return {Errc::ssh_failed, whom.name + ": ssh failed" + tail,
            remedy_for(Errc::ssh_failed, whom)};
  }
  return {cause->code, whom.name + ": " + std::string{cause->means} + tail,
          remedy_for(cause->code, whom)};
}

bool is_out_of_sessions(std::string_view said) {
  return said.contains("open refused by peer") || said.contains("open failed: administratively");
}

Error why_no_session(const Whom& whom, std::string_view said) {
  if (is_out_of_sessions(said)) {
    return {Errc::ssh_failed, whom.name + ": the host takes no further session",
            "raise MaxSessions in the host's sshd_config"};
  }
  // Once the connection is broken, a session's client cannot tell why.
  return {Errc::ssh_unreachable, whom.name + ": the connection broke",
          remedy_for(Errc::ssh_unreachable, whom)};
}

bool is_disk_full(std::string_view said) {
  return said.contains("No space left on device") || said.contains("Disk quota exceeded");
}

Error why_not_done(Errc code, std::string_view what, std::string_view said, std::string remedy) {
  const std::string words = last_words(said);
  std::string message{what};
  if (!words.empty()) message += ": " + words;
  if (is_disk_full(said)) {
    return {Errc::remote_disk_full, std::move(message),
            "make room on the host, or choose a workspace path on another disk"};
  }
  return {code, std::move(message), std::move(remedy)};
}

}  // namespace berth::places::ssh
