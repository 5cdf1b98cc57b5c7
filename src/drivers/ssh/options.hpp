#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace berth::drivers::ssh {

// Whether an environment without a key of its own may use what the user of this server has: keys,
// agent and known hosts. Where several people share a server, it may not.
enum class AmbientIdentity { refused, allowed };

// `automatic`: by a keeper where it can run, by a script of the shell where it cannot.
enum class Supervision { automatic, shell };

struct Options {
  std::string ssh_program = "/usr/bin/ssh";
  std::string keygen_program = "/usr/bin/ssh-keygen";
  // Makes a connection end with this process; where there is none, the next start ends it.
  std::string setpriv_program = "/usr/bin/setpriv";
  std::string keeper_program = {};  // berth-keeper, to be copied to hosts
  // Holds a folder per running server. Where its path is too long for a socket, a folder of /tmp
  // stands in for it.
  std::string control_root = {};
  AmbientIdentity ambient_identity = AmbientIdentity::refused;
  std::optional<std::string> agent_socket = {};  // an ssh-agent for environments without a key
  Supervision supervision = Supervision::automatic;

  std::chrono::milliseconds connect_limit{10'000};
  std::chrono::milliseconds script_limit{30'000};   // one question to the other side
  std::chrono::milliseconds upload_limit{120'000};  // the keeper, once per version and host
  std::chrono::milliseconds idle{60'000};           // how long an unused connection is kept
  std::chrono::milliseconds callback_fresh{60'000};
  // How long a broken connection is tried again for somebody who follows a command.
  std::chrono::milliseconds reattach_limit{600'000};
  std::chrono::seconds alive_interval{5};  // a link that is silent for three of these is dead
  // sshd lets ten sessions share a connection unless told otherwise.
  std::size_t sessions_per_connection = 8;
};

}  // namespace berth::drivers::ssh
