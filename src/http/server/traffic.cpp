#include "http/server/traffic.hpp"

#include "base/log.hpp"
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
      held_bytes_(limits.buffered_bytes_max),
      id_prefix_(random_prefix()) {
  sweep(std::chrono::steady_clock::now());
}

void Traffic::enter(Connection& connection, Place place) {
  connection.place_ = place;
  connection.standing_ = place == Place::reserve ? Standing::guest : Standing::waiting;
  Group& group_of_it = group(connection.standing_);
  group_of_it.list.push_back(connection);
  ++group_of_it.size;
  ++taken(place);
  observer_.connections_changed(++size_);
}

void Traffic::leave(Connection& connection) {
  move(connection, Standing::leaving);
  connection.unlink();
  --group(Standing::leaving).size;
  observer_.connections_changed(--size_);
  if (size_ == 0) emptied_.cancel();
}

// A leaving connection is never chosen again, whatever its coroutine still does.
void Traffic::move(Connection& connection, Standing to) {
  const Standing from = connection.standing_;
  if (from == Standing::leaving) return;
  connection.unlink();
  --group(from).size;
  connection.standing_ = to;
  connection.share_ = nullptr;
  Group& next = group(to);
  next.list.push_back(connection);
  ++next.size;
  if (to == Standing::leaving) --taken(connection.place_);
  if (from == Standing::streaming) observer_.streams_changed(group(Standing::streaming).size);
}

void Traffic::waits(Connection& connection) {
  move(connection, connection.place_ == Place::reserve ? Standing::guest : Standing::waiting);
}

void Traffic::works(Connection& connection) {
  move(connection, Standing::working);
}

void Traffic::stream(Connection& connection, const Shares::Share& share) {
  move(connection, Standing::streaming);
  if (connection.standing_ != Standing::streaming) return;
  connection.share_ = &share;
  observer_.streams_changed(group(Standing::streaming).size);
}

Place Traffic::settle(Connection& connection) {
  const bool is_guest =
      connection.place_ == Place::reserve && connection.standing_ != Standing::leaving;
  if (is_guest && taken(Place::usual) < limits_.connections_max) {
    --taken(Place::reserve);
    ++taken(Place::usual);
    connection.place_ = Place::usual;
    if (connection.standing_ == Standing::guest) move(connection, Standing::waiting);
  }
  return connection.place_;
}

std::optional<Place> Traffic::make_room() {
  if (taken(Place::usual) < limits_.connections_max || evict()) return Place::usual;
  const bool has_room = taken(Place::reserve) < limits_.connections_reserved;
  if (has_room || evict_longest(Standing::guest)) return Place::reserve;
  return std::nullopt;
}

// New connections must not evict one another before their requests are read, so streams are evicted
// first while few connections wait.
bool Traffic::evict() {
  const bool few_wait = group(Standing::waiting).size <= limits_.connections_max / 8;
  if (few_wait && evict_stream()) return true;
  return evict_longest(Standing::waiting) || evict_stream();
}

bool Traffic::evict_longest(Standing standing) {
  List& list = group(standing).list;
  if (list.empty()) return false;
  Connection& longest = list.front();
  move(longest, Standing::leaving);
  longest.abort();
  return true;
}

// The oldest stream of the key that holds the most, in the company that holds the most.
bool Traffic::evict_stream() {
  Connection* chosen = nullptr;
  const auto held = [](const Connection& one) {
    return std::pair{one.share_->held_by_company(), one.share_->held_by_caller()};
  };
  for (Connection& one : group(Standing::streaming).list) {
    if (chosen == nullptr || held(one) > held(*chosen)) chosen = &one;
  }
  if (chosen == nullptr) return false;
  log::info("http.stream_evicted", {{"holder", chosen->share_->holder()}});
  chosen->leaves_by_ = std::chrono::steady_clock::now() + limits_.linger_timeout;
  move(*chosen, Standing::leaving);
  chosen->give_way();
  observer_.stream_evicted();
  return true;
}

void Traffic::sweep(Moment now) {
  for (Group& one : groups_) {
    for (Connection& connection : one.list) {
      if (connection.deadline() <= now) connection.expire();
      if (connection.leaves_by_ <= now) connection.abort();
    }
  }
  const std::time_t second = std::time(nullptr);
  if (second != date_second_) date_ = http_date(second);
  date_second_ = second;
}

void Traffic::drain() {
  draining_ = true;
  for (Group& one : groups_) {
    for (Connection& connection : one.list) connection.drain();
  }
}

void Traffic::abort_all() {
  for (Group& one : groups_) {
    for (Connection& connection : one.list) connection.abort();
  }
}

Task<> Traffic::until_empty(std::chrono::milliseconds time) {
  if (size_ == 0) co_return Result<>{};
  emptied_.expires_after(time);
  co_await emptied_.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return Result<>{};
}

std::string Traffic::next_request_id() {
  return id_prefix_ + std::to_string(++id_count_);
}

}  // namespace berth::http
