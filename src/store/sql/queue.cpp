#include "store/sql/queue.hpp"

namespace berth::store {

void JobQueue::push(Job job) {
  std::unique_lock lock{mutex_};
  if (closed_ || jobs_.size() >= limit_) {
    const bool over = closed_;
    lock.unlock();
    job.done(over ? fail(Errc::cancelled, "the database is being closed")
                  : fail(Errc::overloaded,
                         "the database has " + std::to_string(limit_) + " requests waiting",
                         "repeat the request later"));
    return;
  }
  jobs_.push_back(std::move(job));
  // Unlocked first, so that the woken thread need not wait for the lock.
  lock.unlock();
  arrival_.notify_one();
}

std::optional<Job> JobQueue::take() {
  if (jobs_.empty()) return std::nullopt;
  std::optional<Job> job{std::move(jobs_.front())};
  jobs_.pop_front();
  return job;
}

std::optional<Job> JobQueue::pop() {
  std::unique_lock lock{mutex_};
  arrival_.wait(lock, [this] { return closed_ || !jobs_.empty(); });
  return take();
}

std::optional<Job> JobQueue::try_pop() {
  const std::scoped_lock lock{mutex_};
  return take();
}

bool JobQueue::empty() const {
  const std::scoped_lock lock{mutex_};
  return jobs_.empty();
}

void JobQueue::close() {
  {
    const std::scoped_lock lock{mutex_};
    closed_ = true;
  }
  arrival_.notify_all();
  closing_.notify_all();
}

bool JobQueue::closed() const {
  const std::scoped_lock lock{mutex_};
  return closed_;
}

void JobQueue::pause(std::chrono::milliseconds length) {
  std::unique_lock lock{mutex_};
  closing_.wait_for(lock, length, [this] { return closed_; });
}

}  // namespace berth::store
