#pragma once

#include "base/async/task.hpp"
#include "core/ids.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <list>
#include <map>
#include <string>

namespace berth::engine {

// Wakes tasks that wait for news of a company, a run or the environments. It carries no news
// itself: the store and the logs do, so nothing is missed. A change by another server is found at
// the latest when the wait ends. Single-threaded.
class Feed {
 public:
  explicit Feed(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  template <class Tag>
  void changed(const Id<Tag>& topic) {
    if constexpr (std::same_as<Id<Tag>, core::CompanyId>) ++changes_[topic.str()];
    wake(topic.str(), News::change);
  }
  // How often a company has changed since this server started. Comparing two counts shows whether
  // anything changed between two waits.
  std::uint64_t changes(const core::CompanyId& company) const {
    const auto found = changes_.find(company.str());
    return found != changes_.end() ? found->second : 0;
  }
  // An environment was created, changed or deleted, or its sandboxes start from something else.
  void environments_changed() {
    ++environment_changes_;
    wake(environments, News::change);
  }
  std::uint64_t environment_changes() const { return environment_changes_; }
  // Like `wait`, for a change to any environment since that count.
  Task<> wait_for_environments(std::uint64_t since, std::chrono::milliseconds at_most) {
    if (environment_changes_ != since) co_return Result<>{};
    co_return co_await wait_for(environments, News::change, at_most);
  }
  // A log has grown: this wakes only its followers, because it may happen many times a second.
  void said(const core::RunId& run) { wake(run.str(), News::output); }
  // Waits until something changes or the time is over. Fails with `cancelled` when the waiting task
  // must stop.
  template <class Tag>
  Task<> wait(Id<Tag> topic, std::chrono::milliseconds at_most) {
    co_return co_await wait_for(topic.str(), News::change, at_most);
  }
  // The same, and until the run has produced output.
  Task<> wait_for_output(core::RunId run, std::chrono::milliseconds at_most) {
    co_return co_await wait_for(run.str(), News::output, at_most);
  }

 private:
  static constexpr const char* environments = "environments";  // a topic that is not an id
  enum class News { change, output };  // a waiter for output is also woken by a change
  struct Waiter {
    std::string topic;
    News awaited;
    asio::steady_timer timer;
    bool woken = false;
  };

  void wake(const std::string& topic, News news);
  Task<> wait_for(std::string topic, News awaited, std::chrono::milliseconds at_most);

  asio::any_io_executor executor_;
  std::list<Waiter> waiters_;
  std::map<std::string, std::uint64_t, std::less<>> changes_;  // one per company
  std::uint64_t environment_changes_ = 0;
};

}  // namespace berth::engine
