#pragma once

#include "base/random.hpp"
#include "places/ssh/master.hpp"

#include <string>
#include <string_view>

namespace berth::places::ssh {

struct ScriptEnd {
  int status = 0;
  std::string output;  // stdout and stderr, byte for byte
};

// A plain remote sh that runs scripts, one after another, in one session: a script costs one round
// trip and no process on this machine. Scripts are sent on its stdin, so no part of them is in the
// arguments of any process.
//
// In a script, berth_newline is a newline (see shell_word()), LC_ALL is C, and every line is a line
// of the text.
class RemoteShell {
 public:
  // The command that a session must run to be such a shell; it prints a line when ready.
  static std::string_view command();
  explicit RemoteShell(Session session) : session_(std::move(session)) {}

  // Runs it in a subshell with stdin closed. After any error the shell is unusable: it broke,
  // printed too much, or did not finish in time (timed_out).
  Task<ScriptEnd> run(std::string_view script, RunLimits limits);
  Task<> end() { return session_.end(); }
  bool is_alive() { return session_.process().is_running() && !over_; }

 private:
  Session session_;
  SystemRandom random_;
  bool over_ = false;
};

// For a script in its own session: what is sent after the script is its stdin, and its output comes
// back with nothing before it.
std::string_view script_command();
Task<> send_script(Session& session, std::string_view script, std::chrono::milliseconds limit);

inline constexpr std::string_view shell_greeting = "#berth-shell";

}  // namespace berth::places::ssh
