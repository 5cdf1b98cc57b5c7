#pragma once

#include "base/async/event.hpp"
#include "base/async/task_group.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "core/config/linux_config.hpp"
#include "keeper/protocol/messages.hpp"

#include <chrono>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace berth::providers {

// What a spare sandbox is made for: a config, and the plan that it has led to. The same config can
// lead to another plan later, when the name of its image means another image.
struct SpareOrder {
  core::LinuxConfig config;
  keeper::sandbox::Plan plan;
};

struct SpareSandbox {
  std::string id;
  keeper::Confined confined;
};

// Makes what a pool holds, and removes it.
class SpareMaker {
 public:
  virtual ~SpareMaker() = default;
  // It goes by itself after its lifetime, in case nobody is left to remove it.
  virtual Task<keeper::Confined> make_spare(std::string id, SpareOrder order,
                                            std::chrono::milliseconds lifetime) = 0;
  virtual Task<> remove_spare(std::string id) = 0;
};

struct PoolRequest {
  std::size_t size = 0;
  std::chrono::milliseconds age_max{};
};

// An environment that wants sandboxes to be ready.
struct PoolCustomer {
  SpareOrder order;
  PoolRequest request;
};

// Sandboxes that are made before somebody asks for them, each by a plan; one that was taken never
// comes back. Who has an equal plan shares them: there are as many as all of them wish for
// together, and none is older than any of them allows. They are made one at a time, and only when
// nobody has asked for a moment: whoever needs a sandbox now goes first. After a crash they are in
// nobody's books, and the sweeper removes them as it removes everything of that kind.
class WarmPool {
 public:
  // What is referred to outlives the pool.
  WarmPool(asio::any_io_executor executor, SpareMaker& maker, Random& random, const Clock& clock);

  // All who wish for something from now on; what nobody of them wishes for goes.
  void serve(std::vector<PoolCustomer> customers);
  // One that is ready and young enough, whoever wished for it; another takes its place.
  std::optional<SpareSandbox> take(const keeper::sandbox::Plan& plan);
  // Ready, being made or being removed.
  bool holds(const std::string& id) const;
  // Removes all that is ready. Called last.
  Task<> stop();

 private:
  using Moment = Event::Moment;
  struct Ready {
    SpareSandbox sandbox;
    Moment made;
    std::chrono::milliseconds age_max;  // when it was made: longer it does not live by itself
  };
  // All for one plan.
  struct Shelf {
    SpareOrder order;
    PoolRequest request = {};      // of all customers together
    std::deque<Ready> ready = {};  // the oldest first
    int failures = 0;              // in a row
    Moment again_at = {};          // after a failure

    void add(PoolCustomer customer);
    bool is_young(const Ready& one, Moment now) const;
    // One that is too old, or one too many.
    std::optional<std::string> take_surplus(Moment now);
  };

  Shelf* shelf_of(const keeper::sandbox::Plan& plan);
  void begin_tending();
  Shelf* wanting(Moment now);
  Task<> tend();
  Task<> fill(Shelf& shelf);
  Task<> retire(Moment now);
  Task<> remove(std::string id);

  SpareMaker& maker_;
  Random& random_;
  const Clock& clock_;
  std::list<Shelf> shelves_;
  std::string in_hand_;                 // the id of the one that is being made or removed
  std::vector<std::string> half_made_;  // of which something may be there, to be removed
  Moment last_asked_ = {};
  bool is_tended_ = false;
  bool has_new_requests_ = false;  // that nobody has looked at yet
  Event event_;
  TaskGroup tasks_;
};

}  // namespace berth::providers
