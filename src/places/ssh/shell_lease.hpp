#pragma once

#include "places/ssh/connection.hpp"
#include "places/ssh/held_lease.hpp"
#include "places/ssh/reattach.hpp"
#include "places/ssh/shell_scripts.hpp"

#include <map>

namespace berth::places::ssh {

// A lease on a host that cannot run a keeper: a shell script waits for each command, and its files
// are polled. There are no terminals, and processes that leave the command's process group are not
// found.
class ShellLease final : public HeldLease {
 public:
  ShellLease(Connection::Use connection, LeasePaths paths);

  Task<> open() override;
  Task<Started> start(const Command& command) override;
  Task<Ended> follow(std::string exec_id, std::uint64_t offset, OutputTaker& taker) override;
  Task<> send(std::string exec_id, Input input) override;
  Task<> cancel(std::string exec_id, std::int64_t grace_ms) override;
  Task<> renew(std::int64_t deadline_ms) override;
  Task<> detach() override;
  Task<> remove() override;

 private:
  struct Look;

  Task<ScriptEnd> ask(std::string script);
  Task<> bring_input(const keeper::Exec& exec);
  Task<> open_feed(std::string exec_id);
  Task<> feed(const std::string& exec_id, std::string bytes);
  Task<Look> look(const std::string& exec_id, ShellOffset from);
  Task<bool> take(Look& look, FollowedOutput& output);
  Result<Ended> end_of(const std::string& exec_id, const Look& look) const;
  Error refusal(std::string_view what, std::string_view code) const;
  std::string name() const { return "lease " + paths_.lease_id; }

  Connection::Use connection_;
  LeasePaths paths_;
  std::map<std::string, std::shared_ptr<Session>> feeds_;  // by exec id
};

}  // namespace berth::places::ssh
