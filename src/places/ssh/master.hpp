#pragma once

#include "places/ssh/child_process.hpp"
#include "places/ssh/control_folder.hpp"
#include "places/ssh/diagnosis.hpp"
#include "places/ssh/host_address.hpp"
#include "places/ssh/options.hpp"
#include "places/ssh/target.hpp"

#include <memory>
#include <string>

namespace berth::places::ssh {

class Session;

// One connection to a host, held by our own ssh process. Sessions over it need no further login.
// When that process ends, its sessions end too.
class Master : public std::enable_shared_from_this<Master> {
 public:
  // Connects to this address of the target and logs in. Problems with the key, the host key and the
  // host have different errors. The host key is looked up under the target's name.
  static Task<std::shared_ptr<Master>> connect(const Target& target, HostAddress address,
                                               ControlFolder& folder, const Options& options);

  bool is_alive() const { return child_.is_running(); }
  bool has_room() const { return is_alive() && sessions_ < sessions_max_; }
  pid_t pid() const { return child_.pid(); }
  const std::string& name() const { return whom_.name; }
  bool is_at_private_address() const { return is_private_; }
  // Runs a command in the remote shell. `is_out_of_sessions` shows whether another connection could
  // do what this one refused; this one then counts as full.
  Result<Session> begin(const std::string& command);
  // The refused session is still counted.
  void note_refusal() { sessions_max_ = sessions_ - 1; }

  // Waits until the process has ended.
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

// One remote command, with its three streams here.
class Session {
 public:
  Session(Session&& other) noexcept = default;
  Session& operator=(Session&&) = delete;
  ~Session();

  ChildProcess& process() { return child_; }
  Master& master() { return *master_; }
  // Reads until this line, which the command prints first. So a login shell's greeting is not taken
  // for the command's output. `timed_out` if the line does not come.
  Task<> wait_for_line(std::string_view line, std::chrono::milliseconds limit);
  // Ends it here, and waits until its process has ended. The remote side notices that its output
  // has no reader.
  Task<> end();
  // Why it ended, once its output has.
  asio::awaitable<Error> why_over();

 private:
  friend class Master;
  Session(ChildProcess child, std::shared_ptr<Master> master);

  ChildProcess child_;
  std::shared_ptr<Master> master_;
};

}  // namespace berth::places::ssh
