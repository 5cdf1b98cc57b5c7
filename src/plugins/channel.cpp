#include "plugins/channel.hpp"

#include "base/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/error.hpp>
#include <boost/json/memory_resource.hpp>
#include <boost/json/storage_ptr.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace berth::plugins {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t read_bytes = std::size_t{256} << 10;
constexpr std::size_t excerpt_bytes = 200;
// A small line of many small values grows about twentyfold in memory. Longer lines are parsed
// within a limit.
constexpr std::size_t unbounded_parse_max = std::size_t{1} << 20;

class BoundedMemory final : public bj::memory_resource {
 public:
  explicit BoundedMemory(std::size_t bytes_max) : left_(bytes_max) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t /*alignment*/) override {
    if (bytes > left_) throw std::bad_alloc{};
    left_ -= bytes;
    return ::operator new(bytes);
  }
  void do_deallocate(void* at, std::size_t bytes, std::size_t /*alignment*/) override {
    left_ += bytes;
    ::operator delete(at);
  }
  bool do_is_equal(const bj::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::size_t left_;
};

bj::parse_options options_of(const ChannelLimits& limits) {
  bj::parse_options options;
  options.max_depth = limits.depth_max;
  return options;
}

std::unexpected<Error> broken(std::string message) {
  return fail(Errc::plugin_protocol, std::move(message),
              "report it to the author of the plugin; `berth plugin test` shows what is expected");
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

std::string number_text(std::size_t number) {
  return std::to_string(number);
}

}  // namespace

// Lives in the frame of call(), and is settled on the same thread.
struct Channel::Pending {
  Pending(Channel& owner, std::uint64_t number, Moment until)
      : channel(owner), id(number), deadline(until), settled(owner.executor_) {
    channel.pending_.emplace(id, this);
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  // A wait that is cancelled may leave call() by an exception.
  ~Pending() { channel.pending_.erase(id); }

  Channel& channel;
  std::uint64_t id;
  Moment deadline;
  std::optional<CallResult> result = {};
  Event settled;
};

Error to_error(const CallFailure& failure, std::string_view subject) {
  const std::string message = std::string{subject} + ": " + failure.message;
  switch (failure.cause) {
    case CallFailure::Cause::gone:
      return {Errc::plugin_unavailable, message,
              "look at the plugin's log; it is started again by itself unless it keeps crashing"};
    case CallFailure::Cause::timed_out:
      return {Errc::timed_out, message,
              "raise timeoutMs of the environment, or look at the plugin"};
    case CallFailure::Cause::too_large: return {Errc::command_too_large, message};
    case CallFailure::Cause::busy: return {Errc::overloaded, message, "try again later"};
    case CallFailure::Cause::refused: return {Errc::plugin_call_failed, message};
  }
  return {Errc::bug, message};
}

Channel::Channel(asio::any_io_executor executor, Fd in, Fd out, Peer& peer, ChannelLimits limits)
    : executor_(executor),
      in_(executor, in.release()),
      out_(executor, out.release()),
      peer_(peer),
      limits_(limits),
      parser_(bj::storage_ptr{}, options_of(limits)),
      alarm_(executor),
      tasks_(std::move(executor)) {
  in_.non_blocking(true);
  out_.non_blocking(true);
}

Channel::~Channel() = default;

Task<> Channel::run() {
  std::vector<char> buffer(read_bytes);
  Result<> outcome;
  while (!closed_) {
    const auto [error, size] =
        co_await in_.async_read_some(asio::buffer(buffer), asio::as_tuple(asio::use_awaitable));
    if (error) break;
    outcome = take({buffer.data(), size});
    if (!outcome) break;
  }
  if (!outcome) close(outcome.error().message);
  co_return outcome;
}

void Channel::close(std::string why) {
  if (closed_) return;
  closed_ = true;
  why_closed_ = std::move(why);
  boost::system::error_code ignored;
  in_.close(ignored);
  out_.close(ignored);
  for (auto& [id, pending] : pending_) {
    pending->result = std::unexpected(
        CallFailure{CallFailure::Cause::gone, rpc_code::worker_unavailable, why_closed_});
    pending->settled.notify();
  }
  pending_.clear();
  alarm_.notify();
}

Task<> Channel::drain() {
  return tasks_.stop();
}

Result<> Channel::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    const bool whole = end != std::string_view::npos;
    bytes.remove_prefix(whole ? end + 1 : bytes.size());
    if (skipped_ > 0 || line_.size() + part.size() > limits_.line_in_max) {
      if (skipped_ == 0) {
        BERTH_DO(count_garbage("it is longer than " + number_text(limits_.line_in_max) + " bytes",
                               line_.empty() ? part : std::string_view{line_}));
        skipped_ = line_.size();
        line_ = {};
      }
      skipped_ += part.size();
      if (skipped_ > 2 * limits_.line_in_max) {
        return broken("the worker sent a line of more than " + number_text(skipped_) + " bytes");
      }
      if (whole) skipped_ = 0;
      continue;
    }
    if (!whole) {
      line_.append(part);
      continue;
    }
    if (line_.empty()) {
      BERTH_DO(take_line(part));
      continue;
    }
    line_.append(part);
    const std::string line = std::exchange(line_, {});
    BERTH_DO(take_line(line));
  }
  return {};
}

Result<> Channel::take_line(std::string_view line) {
  if (is_blank(line)) return {};
  boost::system::error_code error;
  bj::value value;
  try {
    if (line.size() <= unbounded_parse_max) {
      parser_.reset();
      parser_.write(line.data(), line.size(), error);
      if (!error) value = parser_.release();
    } else {
      const auto memory =
          bj::make_shared_resource<BoundedMemory>(4 * line.size() + unbounded_parse_max);
      bj::parser bounded{memory, options_of(limits_)};
      bounded.reset(memory);
      bounded.write(line.data(), line.size(), error);
      if (!error) value = bounded.release();
    }
  } catch (const std::bad_alloc&) {
    return broken("the worker sent a line of " + number_text(line.size()) +
                  " bytes that needs more than four times as many in memory");
  }
  if (error == bj::error::too_deep) {
    return broken("the worker sent JSON that is nested more than " +
                  number_text(limits_.depth_max) + " deep");
  }
  if (error) return count_garbage("it is not JSON: " + error.message(), line);
  if (!value.is_object()) return count_garbage("it is not a JSON object", line);
  return dispatch(std::move(value.get_object()));
}

Result<> Channel::dispatch(bj::object object) {
  Message message = classify(std::move(object));
  if (auto* response = std::get_if<Response>(&message)) {
    settle(response->id, std::move(response->result));
    return {};
  }
  if (auto* notification = std::get_if<Notification>(&message)) {
    return peer_.hear(std::move(*notification)) ? Result<>{} : count_useless();
  }
  if (const auto* none = std::get_if<NoMessage>(&message)) return count_garbage(none->why, "");
  auto& request = std::get<Request>(message);
  if (requests_ >= limits_.requests_max) {
    BERTH_DO(count_useless());
    const RpcError busy{rpc_code::worker_unavailable, "too many requests of this worker are open"};
    send(reply_line(request.id, std::unexpected(busy)));
    return {};
  }
  ++requests_;
  tasks_.start("plugin.request", serve(std::move(request)));
  return {};
}

Task<> Channel::serve(Request request) {
  const bj::value id = request.id;
  const Reply reply = co_await peer_.answer(std::move(request));
  --requests_;
  if (closed_) co_return Result<>{};
  if (!reply) {
    if (const Result<> counted = count_useless(); !counted) {
      close(counted.error().message);
      co_return Result<>{};
    }
  }
  if (!send(reply_line(id, reply))) close("the worker does not read the answers to its requests");
  co_return Result<>{};
}

void Channel::settle(const bj::value& id, Reply reply) {
  // Late responses and responses to unknown ids arrive here too.
  const auto number = id.is_int64() && id.get_int64() > 0
                          ? static_cast<std::uint64_t>(id.get_int64())
                          : std::uint64_t{0};
  const auto found = pending_.find(number);
  if (found == pending_.end()) {
    log::debug("plugin.late_reply", {{"id", number}});
    return;
  }
  Pending* const pending = found->second;
  pending_.erase(found);
  if (reply) {
    pending->result = *std::move(reply);
  } else {
    pending->result = std::unexpected(CallFailure{CallFailure::Cause::refused, reply.error().code,
                                                  std::move(reply.error().message)});
  }
  pending->settled.notify();
}

asio::awaitable<CallResult> Channel::call(std::string method, bj::value params,
                                          CallOptions options) {
  using Cause = CallFailure::Cause;
  const auto refuse = [](Cause cause, std::string why) {
    return CallResult{
        std::unexpected(CallFailure{cause, rpc_code::worker_unavailable, std::move(why)})};
  };
  if (closed_) co_return refuse(Cause::gone, why_closed_);
  if (pending_.size() >= limits_.calls_max) {
    co_return refuse(Cause::busy, "too many calls to this worker are open");
  }
  const std::uint64_t id = next_id_++;
  std::string line = request_line(id, method, params, options.invocation);
  if (line.size() > limits_.line_out_max) {
    co_return refuse(Cause::too_large, method + " needs a line of " + number_text(line.size()) +
                                           " bytes, " + number_text(limits_.line_out_max) +
                                           " are allowed");
  }
  const Moment at = std::chrono::steady_clock::now() + options.deadline;
  Pending pending{*this, id, at};
  expect_until(at);
  if (!send(std::move(line))) {
    co_return refuse(closed_ ? Cause::gone : Cause::busy,
                     closed_ ? why_closed_ : "the worker does not read its input");
  }
  Result<> waited;
  while (waited && !pending.result && std::chrono::steady_clock::now() < at) {
    waited = co_await pending.settled.wait();
  }
  if (pending.result) co_return *std::move(pending.result);
  if (!waited) co_return refuse(Cause::gone, "the wait for " + method + " was stopped");
  co_return std::unexpected(CallFailure{
      Cause::timed_out, rpc_code::timeout,
      method + " gave no answer within " + std::to_string(options.deadline.count()) + " ms"});
}

void Channel::expect_until(Moment deadline) {
  if (!std::exchange(watching_deadlines_, true)) {
    alarm_at_ = deadline;
    tasks_.start("plugin.deadlines", watch_deadlines());
  } else if (deadline < alarm_at_) {
    alarm_at_ = deadline;
    alarm_.notify();
  }
}

// Runs until an alarm finds no open call, so that consecutive calls share one task.
Task<> Channel::watch_deadlines() {
  Result<> waited;
  while (waited && !closed_ && !pending_.empty()) {
    if (std::chrono::steady_clock::now() < alarm_at_) {
      waited = co_await alarm_.wait_until(alarm_at_);
      continue;
    }
    alarm_at_ = Moment::max();
    for (const auto& [id, pending] : pending_) {
      if (pending->deadline <= std::chrono::steady_clock::now()) {
        pending->settled.notify();
      } else {
        alarm_at_ = std::min(alarm_at_, pending->deadline);
      }
    }
    if (alarm_at_ == Moment::max()) break;
  }
  watching_deadlines_ = false;
  co_return Result<>{};
}

bool Channel::notify(std::string_view method, const bj::value& params,
                     const std::optional<bj::object>& invocation) {
  return !closed_ && send(notification_line(method, params, invocation));
}

bool Channel::send(std::string line) {
  if (closed_ || queued_bytes_ + line.size() > limits_.queue_out_max) return false;
  std::size_t sent = 0;
  // Most lines fit into the pipe at once, so no writer task has to be woken.
  if (queue_.empty()) {
    const ssize_t written = ::write(out_.native_handle(), line.data(), line.size());
    if (written > 0) sent = static_cast<std::size_t>(written);
    if (written < 0 && errno == EPIPE) return true;  // the worker's exit reports the rest
    if (sent == line.size()) return true;
    sent_of_first_ = sent;
  }
  queued_bytes_ += line.size();
  queue_.push_back(std::move(line));
  if (!std::exchange(writing_, true)) tasks_.start("plugin.write", write_rest());
  return true;
}

Task<> Channel::write_rest() {
  while (!closed_ && !queue_.empty()) {
    const std::string& line = queue_.front();
    const auto [error, size] = co_await out_.async_write_some(
        asio::buffer(line.data() + sent_of_first_, line.size() - sent_of_first_),
        asio::as_tuple(asio::use_awaitable));
    if (error) break;
    sent_of_first_ += size;
    if (sent_of_first_ < line.size()) continue;
    queued_bytes_ -= line.size();
    queue_.pop_front();
    sent_of_first_ = 0;
  }
  writing_ = false;
  co_return Result<>{};
}

Result<> Channel::count_garbage(std::string_view why, std::string_view line) {
  if (++garbage_ > limits_.garbage_lines_max) {
    return broken("the worker sent " + std::to_string(garbage_) + " lines that are not messages");
  }
  const Moment now = std::chrono::steady_clock::now();
  if (garbage_ == 1 || now - said_garbage_ >= 1s) {
    said_garbage_ = now;
    peer_.unread(why, clipped(line, excerpt_bytes));
  }
  return {};
}

Result<> Channel::count_useless() {
  const Moment now = std::chrono::steady_clock::now();
  if (now - second_began_ >= 1s) {
    second_began_ = now;
    useless_in_second_ = 0;
  }
  if (++useless_in_second_ <= limits_.notifications_per_second_max) return {};
  return broken("the worker sends more than " +
                std::to_string(limits_.notifications_per_second_max) +
                " useless messages in a second");
}

}  // namespace berth::plugins
