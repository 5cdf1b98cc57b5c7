#pragma once

#include "base/async/task_group.hpp"
#include "keepers/command.hpp"
#include "keepers/keeper_link.hpp"
#include "keepers/kept_folder.hpp"

#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace berth::keepers {

struct KeeperOptions {
  std::string state_root;      // a folder owned by this server, with one folder per place
  std::string keeper_program;  // path of berth-keeper
  std::vector<std::string> keeper_environment = {};     // commands get none of it
  std::shared_ptr<keeper::KeeperPrefork> prefork = {};  // if absent, each keeper is started
  std::string noun = "lease";                           // what the ids identify, in errors
  // Ends what a killed keeper held; may block. If absent, the keeper's wardens do that, and record
  // how each command ended.
  std::function<Result<>(const keeper::ProcessIdentity& killed)> after_kill = {};
};

// The keepers of this machine, one for each id. A keeper is found again by its folder, so nothing
// here needs to survive a server restart. All operations may be repeated.
class Keepers {
 public:
  using Link = std::shared_ptr<KeeperLink>;
  enum class IfNone { start, tell };

  // A live keeper, one that has ended, or neither if there never was one.
  struct Reached {
    Link link = {};
    std::optional<keeper::FoundKeeper> gone = {};
  };

  Keepers(asio::any_io_executor executor, asio::thread_pool& pool, KeeperOptions options);

  const KeeperOptions& options() const { return options_; }
  asio::thread_pool& pool() { return pool_; }
  const asio::any_io_executor& executor() const { return executor_; }
  KeptFolder folder_of(const std::string& id) const;
  std::string name_of(const std::string& id) const;  // "lease 7f3a"
  Task<Reached> reach(std::string id, IfNone if_none);

  // Asks the keeper. Retries on a new connection if the old one turns out to be broken. Empty if
  // there is no keeper to ask.
  template <class Answer, class Request>
  Task<std::optional<Answer>> ask(std::string id, const Request& request,
                                  KeeperLink::Limit limit = KeeperLink::usual_limit,
                                  IfNone if_none = IfNone::tell) {
    // If the connection broke, repeating the request shows whether the keeper had accepted it. Or a
    // second keeper was started, which found the folder taken by one that a server started just
    // before it was killed, and that is not listening yet.
    const int attempts_max = if_none == IfNone::start ? 10 : 2;
    for (int attempt = 1;; ++attempt) {
      BERTH_CO_TRY(const Reached reached, co_await reach(id, if_none));
      if (!reached.link) co_return std::nullopt;
      Result<Answer> answer = co_await reached.link->template ask<Answer>(request, limit);
      if (answer) co_return *std::move(answer);
      if (answer.error().code != Errc::keeper_unreachable || attempt == attempts_max) {
        co_return std::unexpected(std::move(answer).error());
      }
      if (if_none == IfNone::start) BERTH_CO_DO(co_await pause());
    }
  }

  // The operations of Execution, for one id's keeper.
  Task<Started> start(std::string id, const Command& command, IfNone if_none,
                      PlaceRules rules = {});
  Task<Ended> follow(std::string id, const std::string& exec_id, std::uint64_t offset,
                     OutputTaker& taker);
  Task<> send(std::string id, const std::string& exec_id, Input input);
  Task<> cancel(std::string id, const std::string& exec_id, std::int64_t grace_ms);
  Task<> forget_output(std::string id, std::string exec_id);
  Task<> renew(std::string id, std::int64_t deadline_ms);
  Task<Usage> usage(std::string id);

  // Atomically moves the keeper and its folder to another id. No other request may use the keeper
  // meanwhile.
  Task<> rename(std::string from, std::string to);
  // Ends the keeper with everything it holds, and removes the folder.
  Task<> remove(std::string id);
  // All names in the root, including those not made by this server.
  Task<std::vector<std::string>> held();
  // Closes connections; keepers and their commands live on. Called last.
  Task<> close();

 private:
  // The connection of one id, and whether it is being opened.
  struct Held;
  class Opening;

  KeeperLink make_link(const std::string& id, Fd socket);
  template <class Request>
  Task<> tell(std::string id, const std::string& exec_id, const Request& request,
              KeeperLink::Limit limit);
  Task<> pause();
  Task<Started> started_before(std::string id, std::string exec_id);
  Task<Ended> follow_files(KeptFolder folder, std::string exec_id, std::uint64_t offset,
                           OutputTaker& taker);
  Task<> hand_over_file(KeptFolder folder, std::string exec_id, std::uint64_t offset,
                        OutputTaker& taker);
  Task<> wait_for_wardens(KeptFolder folder, keeper::FoundKeeper gone);
  Task<> stop_keeper(std::string id);
  Task<> kill(KeptFolder folder, KeeperLink& link);

  asio::any_io_executor executor_;
  asio::thread_pool& pool_;
  KeeperOptions options_;
  TaskGroup tasks_;  // readers of links, reapers of keepers
  std::map<std::string, std::shared_ptr<Held>> held_;
};

}  // namespace berth::keepers
