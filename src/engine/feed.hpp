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

// Wakes whoever waits for news of a company, of a run or of the environments. It carries no news
// itself: the store and the logs do, so nothing can be missed, and a change made by another server
// is found at the latest when the wait ends. One thread.
class Feed {
 public:
  explicit Feed(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  template <class Tag>
  void changed(const Id<Tag>& topic) {
    if constexpr (std::same_as<Id<Tag>, core::CompanyId>) ++changes_[topic.str()];
    wake(topic.str(), News::change);
  }
  // How often a company has changed since this server began: whoever compares two counts has missed
  // nothing between two waits.
  std::uint64_t changes(const core::CompanyId& company) const {
    const auto found = changes_.find(company.str());
    return found != changes_.end() ? found->second : 0;
  }
  // An environment has come, changed or gone, or what its sandboxes start from is another.
  void environments_changed() {
    ++environment_changes_;
    wake(environments, News::change);
  }
  std::uint64_t environment_changes() const { return environment_changes_; }
  // As `wait`, for a change of any environment since that count.
  Task<> wait_for_environments(std::uint64_t since, std::chrono::milliseconds at_most) {
    if (environment_changes_ != since) co_return Result<>{};
    co_return co_await wait_for(environments, News::change, at_most);
  }
  // A log has more: of interest only to those who follow it, and there may be very many a second.
  void said(const core::RunId& run) { wake(run.str(), News::output); }
  // Until something changed or the time is over. Ends with `cancelled` when the waiting task is to
  // stop.
  template <class Tag>
  Task<> wait(Id<Tag> topic, std::chrono::milliseconds at_most) {
    co_return co_await wait_for(topic.str(), News::change, at_most);
  }
  // The same, and until the run has said something.
  Task<> wait_for_output(core::RunId run, std::chrono::milliseconds at_most) {
    co_return co_await wait_for(run.str(), News::output, at_most);
  }

 private:
  static constexpr const char* environments = "environments";  // a topic that is no id
  enum class News { change, output };  // who waits for output is woken by a change too
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
  std::map<std::string, std::uint64_t, std::less<>> changes_;  // as many as there are companies
  std::uint64_t environment_changes_ = 0;
};

}  // namespace berth::engine
