#pragma once

#include "base/task_group.hpp"
#include "drivers/driver.hpp"
#include "drivers/keeper_link.hpp"
#include "drivers/lease_folder.hpp"

#include <boost/asio/thread_pool.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace berth::drivers {

struct LocalOptions {
  std::string state_root;      // a folder of this server's own; each lease has one in it
  std::string keeper_program;  // path of berth-keeper
  std::vector<std::string> keeper_environment = {};  // commands get none of it
};

// Commands as processes of this machine, held by one keeper for each lease. The keeper is started
// with the first command; after a restart of the server it is found again by its folder.
class Local final : public Driver {
 public:
  Local(asio::any_io_executor executor, asio::thread_pool& pool, LocalOptions options);

  Task<ProbeReport> probe(const AcquireRequest& request) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  Task<Workspace> realize(const LeaseFacts& lease,
                          const std::optional<std::string>& wanted) override;
  Task<Started> start(const LeaseFacts& lease, const Command& command) override;
  Task<Ended> follow(const LeaseFacts& lease, const std::string& exec_id, std::uint64_t offset,
                     OutputTaker& taker) override;
  Task<> send(const LeaseFacts& lease, const std::string& exec_id, Input input) override;
  Task<> cancel(const LeaseFacts& lease, const std::string& exec_id,
                std::int64_t grace_ms) override;
  Task<> renew(const LeaseFacts& lease, std::int64_t deadline_ms) override;
  Task<> release(const LeaseFacts& lease, core::LeaseEvent how) override;
  Task<> destroy(const LeaseFacts& lease) override;

  Task<> close() override;
  Task<std::vector<core::LeaseId>> held() override;

 private:
  using Link = std::shared_ptr<KeeperLink>;
  enum class IfNone { start, tell };

  // A keeper that can be asked, or one that is gone, or neither: the lease never had one.
  struct Reached {
    Link link = {};
    std::optional<keeper::FoundKeeper> gone = {};
  };
  // The connection of one lease, and who is about to make it.
  struct Held;
  class Opening;

  LeaseFolder folder_of(const core::LeaseId& id) const;
  KeeperLink make_link(const core::LeaseId& id, Fd socket);
  Task<Reached> reach(core::LeaseId id, IfNone if_none);

  // Asks the lease's keeper; once more on a new connection when the old one turns out to be broken.
  // Nothing when there is no keeper to ask.
  template <class Answer, class Request>
  Task<std::optional<Answer>> ask(core::LeaseId id, const Request& request,
                                  KeeperLink::Limit limit);

  template <class Request>
  Task<> tell(const LeaseFacts& lease, const std::string& exec_id, const Request& request,
              KeeperLink::Limit limit);

  Task<Started> started_before(const LeaseFacts& lease, const Command& command, Reached reached);
  Task<Ended> follow_files(LeaseFolder folder, std::string exec_id, std::uint64_t offset,
                           OutputTaker& taker);
  Task<> hand_over_file(LeaseFolder folder, std::string exec_id, std::uint64_t offset,
                        OutputTaker& taker);
  Task<> wait_for_wardens(LeaseFolder folder, keeper::FoundKeeper gone);
  Task<> remove(core::LeaseId id);
  Task<> stop_keeper(core::LeaseId id);
  Task<> kill(LeaseFolder folder, KeeperLink& link);
  Task<std::string> try_keeper(std::string folder);

  asio::any_io_executor executor_;
  asio::thread_pool& pool_;
  LocalOptions options_;
  TaskGroup tasks_;  // readers of links, reapers of keepers
  std::map<core::LeaseId, std::shared_ptr<Held>> held_;
};

}  // namespace berth::drivers
