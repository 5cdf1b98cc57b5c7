#pragma once

#include "base/async/async_mutex.hpp"
#include "base/clock.hpp"
#include "places/ssh/remote_shell.hpp"
#include "places/ssh/scripts.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace berth::places::ssh {

// What is known about a workspace on a host. It rarely changes, so it is read once per connection.
struct HostFacts {
  std::string cwd;
  std::string home;
  std::string path;  // PATH of a login
  std::string system;
  std::string machine;
  std::optional<std::string> keeper = {};  // its path, if it runs there
  std::string no_keeper = {};              // why there is none
};

// The program that is copied to hosts. Read on first use and then kept: the file may be replaced by
// another version while this server runs.
class KeeperProgram {
 public:
  struct Loaded {
    KeeperName name;
    std::string bytes;
  };

  explicit KeeperProgram(std::string path) : path_(std::move(path)) {}
  // Valid as long as this object.
  Result<const Loaded*> load();

 private:
  std::string path_;
  std::optional<Loaded> loaded_;
};

// Everything for one target: its connections, a shell over the first of them, and what is known
// about the host. Connects on first use, and again when a connection has broken.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Shared {
    asio::any_io_executor executor;
    const Clock& clock;
    const Options& options;
    ControlFolder& folder;
    KeeperProgram& keeper;
    egress::Resolver& resolver;
    // Called when a connection has been unused for a while.
    std::function<void(Connection&)> on_idle;
  };
  Connection(const Shared& shared, Target target);

  const Target& target() const { return target_; }
  const Options& options() const { return shared_.options; }
  asio::any_io_executor executor() const { return shared_.executor; }

  // While one exists, the connection is not idle.
  class [[nodiscard]] Use {
   public:
    explicit Use(std::shared_ptr<Connection> connection);
    Use(Use&& other) noexcept = default;
    Use& operator=(Use&&) = delete;
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
    Connection* operator->() const { return connection_.get(); }
    Connection& operator*() const { return *connection_; }
    Use again() const { return Use{connection_}; }

   private:
    std::shared_ptr<Connection> connection_;
  };

  Task<> connect();
  // Runs a script on the remote host. Reconnects first if the connection has broken unnoticed.
  Task<ScriptEnd> ask(std::string script, RunLimits limits);
  // A separate session for a script that takes long or reads stdin.
  Task<Session> begin(std::string script);
  // A session for a command of the user's shell, which prints the line first.
  Task<Session> begin_command(std::string command, std::string line);

  // Uploads the keeper if it is missing and can run there.
  Task<HostFacts> survey(std::string workspace);
  void forget(const std::string& workspace) { places_.erase(workspace); }
  // The first of the origins that answers from there; empty if none does.
  Task<std::optional<std::string>> reachable(std::vector<std::string> origins);

  Task<> close();
  bool is_closed() const { return closed_; }
  std::vector<pid_t> master_pids() const;
  // Whether the host was reached at a private address.
  bool is_at_private_address() const { return was_private_; }

 private:
  Task<std::shared_ptr<Master>> master();
  Task<std::shared_ptr<Master>> log_in();
  Task<HostFacts> survey_place(const std::string& workspace);
  Task<> bring_keeper(HostFacts& place, const KeeperProgram::Loaded& program);
  Task<std::string> upload(const std::string& folder, const KeeperProgram::Loaded& program);
  Result<> check_open() const;

  const Shared& shared_;
  Target target_;
  std::vector<std::shared_ptr<Master>> masters_;
  std::optional<RemoteShell> shell_;
  std::map<std::string, HostFacts> places_;
  struct Reached {
    std::string origin;
    Clock::Steady at;
  };
  std::map<std::vector<std::string>, Reached> reached_;
  AsyncMutex connecting_;
  AsyncMutex asking_;
  AsyncMutex surveying_;
  std::size_t uses_ = 0;
  asio::steady_timer idle_;
  bool closed_ = false;
  bool was_private_ = false;
};

}  // namespace berth::places::ssh
