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

namespace berth::places {

// What a spare sandbox is made for: a config and the plan that resulted from it. The same config
// can result in another plan later, when its image name means another image.
struct SpareOrder {
  core::LinuxConfig config;
  keeper::sandbox::Plan plan;
};

struct SpareSandbox {
  std::string id;
  keeper::Confined confined;
};

// Makes and removes a pool's sandboxes.
class SpareMaker {
 public:
  virtual ~SpareMaker() = default;
  // It ends by itself after its lifetime, in case no server is left to remove it.
  virtual Task<keeper::Confined> make_spare(std::string id, SpareOrder order,
                                            std::chrono::milliseconds lifetime) = 0;
  virtual Task<> remove_spare(std::string id) = 0;
};

struct PoolRequest {
  std::size_t size = 0;
  std::chrono::milliseconds age_max{};
};

// An environment that wants sandboxes kept ready.
struct PoolCustomer {
  SpareOrder order;
  PoolRequest request;
};

// Sandboxes that are made before they are requested, each for a plan; a taken one never comes back.
// Customers with equal plans share them: there are as many as all of them request together, and
// none is older than any of them allows. They are made one at a time, and only when there has been
// no request for a moment: a sandbox that is needed now goes first. After a crash they are not
// recorded anywhere, and the sweeper removes them like any other unrecorded sandbox.
class WarmPool {
 public:
  // The references must outlive the pool.
  WarmPool(asio::any_io_executor executor, SpareMaker& maker, Random& random, const Clock& clock);

  // Sets all customers from now on; sandboxes that none of them wants are removed.
  void serve(std::vector<PoolCustomer> customers);
  // One that is ready and young enough, whichever customer it was made for. A new one replaces it.
  std::optional<SpareSandbox> take(const keeper::sandbox::Plan& plan);
  // Whether it is ready, being made or being removed.
  bool holds(const std::string& id) const;
  // Removes everything that is ready. Called last.
  Task<> stop();

 private:
  using Moment = Event::Moment;
  struct Ready {
    SpareSandbox sandbox;
    Moment made;
    std::chrono::milliseconds age_max;  // at its making; it does not live longer
  };
  // All sandboxes for one plan.
  struct Shelf {
    SpareOrder order;
    PoolRequest request = {};      // of all customers together
    std::deque<Ready> ready = {};  // oldest first
    int failures = 0;              // in a row
    Moment again_at = {};          // after a failure

    void add(PoolCustomer customer);
    bool is_young(const Ready& one, Moment now) const;
    // One that is too old or surplus.
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
  std::string in_hand_;                 // the id being made or removed
  std::vector<std::string> half_made_;  // ids that may be partly made, to be removed
  Moment last_asked_ = {};
  bool is_tended_ = false;
  bool has_new_requests_ = false;  // not processed yet
  Event event_;
  TaskGroup tasks_;
};

}  // namespace berth::places
