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

// Jobs on their way to the threads of a database: bounded, first in, first out. After close()
// nothing is accepted any more, and what was accepted is still handed out.
class JobQueue {
 public:
  explicit JobQueue(std::size_t limit) : limit_(limit) {}

  // A job that finds no place is answered at once, on the caller's thread, with `overloaded`.
  void push(Job job);
  // Waits for a job; nothing when the queue is closed and empty.
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
