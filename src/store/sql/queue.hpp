#pragma once

#include "store/sql/database.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

namespace berth::store {

enum class JobKind { read, write };

struct Job {
  JobKind kind;
  Database::Work work;
  Database::Done done;
};

// Jobs for the threads of a database: a bounded FIFO queue. After close() it accepts no jobs, but
// still hands out those it accepted.
class JobQueue {
 public:
  explicit JobQueue(std::size_t limit) : limit_(limit) {}

  // A job that does not fit completes at once, on the caller's thread, with `overloaded`.
  void push(Job job);
  // Waits for a job; empty when the queue is closed and empty.
  std::optional<Job> pop();
  std::optional<Job> try_pop();
  bool empty() const;
  void close();
  bool closed() const;
  // A pause that ends early when the queue is closed.
  void pause(std::chrono::milliseconds length);

 private:
  std::optional<Job> take();

  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable arrival_;
  std::condition_variable closing_;
  std::deque<Job> jobs_;
  bool closed_ = false;
};

}  // namespace berth::store
