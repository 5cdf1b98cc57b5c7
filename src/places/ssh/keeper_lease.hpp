#pragma once

#include "keepers/keeper_link.hpp"
#include "places/ssh/connection.hpp"
#include "places/ssh/held_lease.hpp"
#include "places/ssh/reattach.hpp"

namespace berth::places::ssh {

// A lease whose commands are held by a keeper on the host. One session carries all requests to it.
// If that breaks, the keeper and its commands live on, and the next session finds them.
class KeeperLease final : public HeldLease {
 public:
  KeeperLease(Connection::Use connection, TaskGroup& tasks, LeasePaths paths);

  Task<> open() override;
  Task<Started> start(const Command& command) override;
  Task<Ended> follow(std::string exec_id, std::uint64_t offset, OutputTaker& taker) override;
  Task<> send(std::string exec_id, Input input) override;
  Task<> cancel(std::string exec_id, std::int64_t grace_ms) override;
  Task<> renew(std::int64_t deadline_ms) override;
  Task<> detach() override;
  Task<> remove() override;

 private:
  // The session and the protocol over it; the protocol is destroyed first.
  struct Line {
    Session session;
    keepers::KeeperLink link;
    bool answered = false;
  };
  using Limit = keepers::KeeperLink::Limit;

  Task<Session> begin_session();
  Task<std::shared_ptr<Line>> line(keeper::OpenHow how);
  void drop(const std::shared_ptr<Line>& broken);
  // Asks on a line, which is reopened if it has broken. `how` decides what happens if there is no
  // keeper.
  template <class Answer, class Request>
  Task<Answer> ask(const Request& request, Limit limit,
                   keeper::OpenHow how = keeper::OpenHow::attach);
  // Asks once: for requests that must not be repeated.
  template <class Request>
  Task<> ask_once(const Request& request, Limit limit);
  // A command that was started by a different request, or by a keeper that is over.
  Task<Started> started_before(std::string exec_id, Error otherwise);
  Task<> write(const std::string& exec_id, std::string bytes);

  enum class Life { alive, ended, dead, gone };
  struct Found {
    Life life = Life::gone;
    std::string why;
  };
  Task<Found> look();
  Error over(const Found& found) const;
  Task<Ended> follow_once(const std::string& exec_id, FollowedOutput& output);
  // Reads what a keeper that is over left in its files.
  Task<Ended> read_remains(const std::string& exec_id, FollowedOutput& output, Life life);
  std::string name() const { return "lease " + paths_.lease_id; }

  Connection::Use connection_;
  TaskGroup& tasks_;
  LeasePaths paths_;
  AsyncMutex opening_;
  std::shared_ptr<Line> line_;
};

}  // namespace berth::places::ssh
