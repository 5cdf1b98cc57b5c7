#pragma once

#include "base/random.hpp"
#include "drivers/ssh/master.hpp"

#include <string>
#include <string_view>

namespace berth::drivers::ssh {

struct ScriptEnd {
  int status = 0;
  std::string output;  // stdout and stderr, byte for byte
};

// A plain sh on the other side that runs scripts, one after another, in one session: a question
// costs one round trip and no process of this machine. Scripts travel on its stdin, so nothing of
// them is in the arguments of any process.
//
// In a script, berth_newline is a newline (see shell_word()), LC_ALL is C, and every line is a line
// of the text.
class RemoteShell {
 public:
  // What a session must run to be such a shell, and says when it is one.
  static std::string_view command();
  explicit RemoteShell(Session session) : session_(std::move(session)) {}

  // In a subshell with stdin closed. Any error means that the shell is of no use any more: it
  // broke, said too much, or did not come back in time (timed_out).
  Task<ScriptEnd> run(std::string_view script, RunLimits limits);
  Task<> end() { return session_.end(); }
  bool is_alive() { return session_.process().is_running() && !over_; }

 private:
  Session session_;
  SystemRandom random_;
  bool over_ = false;
};

// For a script with a session of its own: what is sent after the script is its stdin, and what it
// prints comes back with nothing before it.
std::string_view script_command();
Task<> send_script(Session& session, std::string_view script, std::chrono::milliseconds limit);

inline constexpr std::string_view shell_greeting = "#berth-shell";

}  // namespace berth::drivers::ssh
