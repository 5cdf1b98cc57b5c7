#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace berth::places::ssh {

// Whether an environment without its own key may use what the server's user has: keys, agent and
// known hosts. On a server that several people share, it may not.
enum class AmbientIdentity { refused, allowed };

// `automatic`: by a keeper if it can run there, otherwise by a shell script.
enum class Supervision { automatic, shell };

struct Options {
  std::string ssh_program = "/usr/bin/ssh";
  std::string keygen_program = "/usr/bin/ssh-keygen";
  // Makes a connection end with this process; without it, the next server start ends it.
  std::string setpriv_program = "/usr/bin/setpriv";
  std::string keeper_program = {};  // berth-keeper, to be copied to hosts
  // Contains a folder per running server. If its path is too long for a socket, a folder in /tmp is
  // used instead.
  std::string control_root = {};
  AmbientIdentity ambient_identity = AmbientIdentity::refused;
  std::optional<std::string> agent_socket = {};  // an ssh-agent for environments without a key
  Supervision supervision = Supervision::automatic;

  std::chrono::milliseconds connect_limit{10'000};
  std::chrono::milliseconds script_limit{30'000};   // one script on the remote host
  std::chrono::milliseconds upload_limit{120'000};  // the keeper, once per version and host
  std::chrono::milliseconds idle{60'000};           // how long an unused connection is kept
  std::chrono::milliseconds callback_fresh{60'000};
  // How long reconnecting is retried while a command is being followed.
  std::chrono::milliseconds reattach_limit{600'000};
  std::chrono::seconds alive_interval{5};  // a link that is silent for three of these is dead
  // sshd's default is ten sessions per connection.
  std::size_t sessions_per_connection = 8;
};

}  // namespace berth::places::ssh
