#pragma once

#include "base/task.hpp"
#include "http/gate.hpp"
#include "http/limits.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace berth::http {

using Moment = std::chrono::steady_clock::time_point;

// One client, as the sweep sees it: when it is overdue, and how to end it.
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

  // Each only closes a socket or wakes a waiter; the connection's own coroutine does the rest
  // later, on the loop.
  virtual void expire() = 0;  // the deadline has passed
  virtual void abort() = 0;   // end at once
  virtual void drain() = 0;   // end as soon as nothing is half done

 private:
  Moment deadline_ = Moment::max();
};

// All connections of a server and what they share: the deadlines, the limits that only count for
// all together, and the end. Deadlines cost one look per sweep instead of a timer per wait.
class Traffic {
 public:
  Traffic(const asio::any_io_executor& executor, const Limits& limits, Observer& observer);
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  const Limits& limits() const { return limits_; }
  Observer& observer() { return observer_; }

  // A connection waits until it has a whole request; while it waits it may be evicted.
  void enter(Connection& connection);
  void leave(Connection& connection);
  void waits(Connection& connection);
  void works(Connection& connection);
  std::size_t size() const { return size_; }

  bool full() const { return size_ >= limits_.connections_max; }
  // Ends the connection that has waited longest for a whole request. There may be none.
  bool evict();
  void sweep(Moment now);

  bool draining() const { return draining_; }
  void drain();
  void abort_all();
  // Returns when no connection is left or the time is over.
  Task<> until_empty(std::chrono::milliseconds time);

  // A handler is at work; refused above the limit.
  bool begin_request();
  void end_request() { --in_flight_; }
  // A request is passed on; refused above the limit.
  bool begin_relay();
  void end_relay() { --relays_; }
  // Body bytes in memory, of all connections; refused above the limit.
  bool add_buffered(std::size_t bytes);
  void remove_buffered(std::size_t bytes) { buffered_bytes_ -= bytes; }

  std::string next_request_id();
  // The value of a Date header, as of the last sweep.
  const std::string& date() const { return date_; }

 private:
  using List = boost::intrusive::list<Connection, boost::intrusive::constant_time_size<false>>;

  const Limits& limits_;
  Observer& observer_;
  List waiting_;  // longest first
  List working_;
  std::size_t size_ = 0;
  asio::steady_timer emptied_;
  bool draining_ = false;
  std::size_t in_flight_ = 0;
  std::size_t relays_ = 0;
  std::size_t buffered_bytes_ = 0;
  std::string id_prefix_;
  std::uint64_t id_count_ = 0;
  std::string date_;
  std::int64_t date_second_ = 0;
};

}  // namespace berth::http
