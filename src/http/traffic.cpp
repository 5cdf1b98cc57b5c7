#include "http/traffic.hpp"

#include "base/random.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <ctime>

namespace berth::http {
namespace {

std::string http_date(std::time_t now) {
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  const std::size_t size =
      std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

std::string random_prefix() {
  std::array<unsigned char, 4> bytes{};
  SystemRandom{}.fill(bytes);
  return hex(bytes) + "-";
}

}  // namespace

Traffic::Traffic(const asio::any_io_executor& executor, const Limits& limits, Observer& observer)
    : limits_(limits),
      observer_(observer),
      emptied_(executor, Moment::max()),
      id_prefix_(random_prefix()) {
  sweep(std::chrono::steady_clock::now());
}

void Traffic::enter(Connection& connection) {
  waiting_.push_back(connection);
  observer_.connections_changed(++size_);
}

void Traffic::leave(Connection& connection) {
  connection.unlink();
  observer_.connections_changed(--size_);
  if (size_ == 0) emptied_.cancel();
}

void Traffic::waits(Connection& connection) {
  connection.unlink();
  waiting_.push_back(connection);
}

void Traffic::works(Connection& connection) {
  connection.unlink();
  working_.push_back(connection);
}

bool Traffic::evict() {
  if (waiting_.empty()) return false;
  Connection& longest = waiting_.front();
  works(longest);  // on its way out, and not to be chosen again
  longest.abort();
  return true;
}

void Traffic::sweep(Moment now) {
  for (List* list : {&waiting_, &working_}) {
    for (Connection& connection : *list) {
      if (connection.deadline() <= now) connection.expire();
    }
  }
  const std::time_t second = std::time(nullptr);
  if (second != date_second_) date_ = http_date(second);
  date_second_ = second;
}

void Traffic::drain() {
  draining_ = true;
  for (List* list : {&waiting_, &working_}) {
    for (Connection& connection : *list) connection.drain();
  }
}

void Traffic::abort_all() {
  for (List* list : {&waiting_, &working_}) {
    for (Connection& connection : *list) connection.abort();
  }
}

Task<> Traffic::until_empty(std::chrono::milliseconds time) {
  if (size_ == 0) co_return Result<>{};
  emptied_.expires_after(time);
  co_await emptied_.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return Result<>{};
}

bool Traffic::begin_request() {
  if (in_flight_ >= limits_.requests_in_flight_max) return false;
  ++in_flight_;
  return true;
}

bool Traffic::begin_relay() {
  if (relays_ >= limits_.relays_max) return false;
  ++relays_;
  return true;
}

bool Traffic::add_buffered(std::size_t bytes) {
  if (buffered_bytes_ + bytes > limits_.buffered_bytes_max) return false;
  buffered_bytes_ += bytes;
  return true;
}

std::string Traffic::next_request_id() {
  return id_prefix_ + std::to_string(++id_count_);
}

}  // namespace berth::http
