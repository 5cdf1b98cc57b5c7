#pragma once

#include "drivers/ssh/child_process.hpp"
#include "drivers/ssh/control_folder.hpp"
#include "drivers/ssh/diagnosis.hpp"
#include "drivers/ssh/host_address.hpp"
#include "drivers/ssh/options.hpp"
#include "drivers/ssh/target.hpp"

#include <memory>
#include <string>

namespace berth::drivers::ssh {

class Session;

// One connection to a host, held by an ssh process that is ours, over which sessions begin without
// another login. When that process ends, so do its sessions.
class Master : public std::enable_shared_from_this<Master> {
 public:
  // Connects to this address of the target and logs in. What is wrong with key, host key or host is
  // told apart. The host key is looked up under the target's name.
  static Task<std::shared_ptr<Master>> connect(const Target& target, HostAddress address,
                                               ControlFolder& folder, const Options& options);

  bool is_alive() const { return child_.is_running(); }
  bool has_room() const { return is_alive() && sessions_ < sessions_max_; }
  pid_t pid() const { return child_.pid(); }
  const std::string& name() const { return whom_.name; }
  bool is_at_private_address() const { return is_private_; }
  // Runs a command of the other side's shell. `is_out_of_sessions` says whether another connection
  // could do what this one refused; it then has no room any more.
  Result<Session> begin(const std::string& command);
  // The session that was refused is still counted.
  void note_refusal() { sessions_max_ = sessions_ - 1; }

  // Waits until the process is gone.
  Task<> end();

 private:
  friend class Session;
  Master(ChildProcess child, ShortLivedFile socket, const Target& target,
         const HostAddress& address, const Options& options);

  ChildProcess child_;
  ShortLivedFile socket_;
  Options options_;
  Whom whom_;
  std::string username_;
  bool is_private_ = false;
  std::size_t sessions_ = 0;
  std::size_t sessions_max_;
};

// One command on the other side, with its three streams here.
class Session {
 public:
  Session(Session&& other) noexcept = default;
  Session& operator=(Session&&) = delete;
  ~Session();

  ChildProcess& process() { return child_; }
  Master& master() { return *master_; }
  // Reads until the line, which the command says before all else. Shells that greet whoever logs
  // in are thus not taken for the command. `timed_out` when it is not said.
  Task<> wait_for_line(std::string_view line, std::chrono::milliseconds limit);
  // Ends it here, and waits until its process is gone. Over there it notices that nobody listens.
  Task<> end();
  // Why it ended, once its output has.
  asio::awaitable<Error> why_over();

 private:
  friend class Master;
  Session(ChildProcess child, std::shared_ptr<Master> master);

  ChildProcess child_;
  std::shared_ptr<Master> master_;
};

}  // namespace berth::drivers::ssh
