#pragma once

#include "base/async/task.hpp"
#include "http/gate.hpp"
#include "http/limits.hpp"
#include "http/server/held_bytes.hpp"
#include "http/server/shares.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace berth::http {

using Moment = std::chrono::steady_clock::time_point;

// A connection's state towards the others. Waiting: it has no whole request, or does not read its
// response. A guest waits in the reserve. Leaving: it was evicted.
enum class Standing { waiting, guest, working, streaming, leaving };

// One client, as the sweep sees it: its deadline, and how to end it.
class Connection : public boost::intrusive::list_base_hook<
                       boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  Moment deadline() const { return deadline_; }
  void set_deadline(Moment at) { deadline_ = at; }
  void set_deadline_in(std::chrono::milliseconds time) {
    deadline_ = std::chrono::steady_clock::now() + time;
  }
  void clear_deadline() { deadline_ = Moment::max(); }
  Place place() const { return place_; }

  // Each only closes a socket or wakes a waiter; the connection's own coroutine does the rest
  // later, on the loop.
  virtual void expire() = 0;    // the deadline has passed
  virtual void abort() = 0;     // end at once
  virtual void drain() = 0;     // end as soon as nothing is incomplete
  virtual void give_way() = 0;  // end the stream, so that its client knows to reconnect

 private:
  friend class Traffic;

  Moment deadline_ = Moment::max();
  Moment leaves_by_ = Moment::max();
  Place place_ = Place::usual;
  Standing standing_ = Standing::waiting;
  const Shares::Share* share_ = nullptr;  // while it streams
};

// All connections of a server and what they share: the deadlines, the total limits, and the
// shutdown. Deadlines cost one check per sweep instead of one timer per wait.
class Traffic {
 public:
  Traffic(const asio::any_io_executor& executor, const Limits& limits, Observer& observer);
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  const Limits& limits() const { return limits_; }
  Observer& observer() { return observer_; }

  // A connection waits until it has a whole request; meanwhile it may be evicted.
  void enter(Connection& connection, Place place);
  void leave(Connection& connection);
  void waits(Connection& connection);
  void works(Connection& connection);
  // Moves a guest to a usual place that has become free. Returns the connection's place.
  Place settle(Connection& connection);
  std::size_t size() const { return size_; }

  // Where one more connection fits, after evicting others if needed. Nothing when every place,
  // including the reserve, has a running request.
  std::optional<Place> make_room();
  // Evicts a connection from a usual place: the one that has waited longest for a whole request, or
  // the oldest stream of the largest holder. There may be neither.
  bool evict();
  void sweep(Moment now);

  bool draining() const { return draining_; }
  void drain();
  void abort_all();
  // Returns when no connection is left or the time is up.
  Task<> until_empty(std::chrono::milliseconds time);

  HeldBytes& held_bytes() { return held_bytes_; }

  std::string next_request_id();
  // The value of a Date header, as of the last sweep.
  const std::string& date() const { return date_; }

 private:
  friend class Streaming;
  using List = boost::intrusive::list<Connection, boost::intrusive::constant_time_size<false>>;
  struct Group {
    List list;  // longest first
    std::size_t size = 0;
  };

  Group& group(Standing standing) { return groups_[static_cast<std::size_t>(standing)]; }
  std::size_t& taken(Place place) { return taken_[static_cast<std::size_t>(place)]; }
  void move(Connection& connection, Standing to);
  void stream(Connection& connection, const Shares::Share& share);
  bool evict_longest(Standing standing);
  bool evict_stream();

  const Limits& limits_;
  Observer& observer_;
  std::array<Group, 5> groups_;            // by standing
  std::array<std::size_t, 2> taken_ = {};  // by place, without leaving connections
  std::size_t size_ = 0;
  asio::steady_timer emptied_;
  bool draining_ = false;
  HeldBytes held_bytes_;
  std::string id_prefix_;
  std::uint64_t id_count_ = 0;
  std::string date_;
  std::int64_t date_second_ = 0;
};

// While this lives, the connection carries a stream, a socket or a relayed request: it holds its
// share, and may be evicted.
class [[nodiscard]] Streaming {
 public:
  Streaming(Traffic& traffic, Connection& connection, Shares::Share share)
      : traffic_(traffic), connection_(connection), share_(std::move(share)) {
    traffic_.stream(connection_, share_);
  }
  Streaming(const Streaming&) = delete;
  Streaming& operator=(const Streaming&) = delete;
  ~Streaming() { traffic_.works(connection_); }

 private:
  Traffic& traffic_;
  Connection& connection_;
  Shares::Share share_;
};

}  // namespace berth::http
