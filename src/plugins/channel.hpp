#pragma once

#include "base/async/event.hpp"
#include "base/async/task.hpp"
#include "base/async/task_group.hpp"
#include "base/json/json.hpp"
#include "base/owned.hpp"
#include "plugins/message.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/json/parser.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace berth::plugins {

struct ChannelLimits {
  std::size_t line_in_max = std::size_t{128} << 20;   // dropped; twice as long ends the channel
  std::size_t line_out_max = std::size_t{16} << 20;   // Node crashes on a line of about 48 MiB
  std::size_t queue_out_max = std::size_t{64} << 20;  // for a worker that does not read
  std::size_t depth_max = 64;
  std::size_t calls_max = 4096;                         // our calls in flight
  std::size_t requests_max = 256;                       // the worker's requests in flight; more are
                                                        // refused
  std::uint64_t notifications_per_second_max = 20'000;  // unwanted ones; more end the channel
  std::uint64_t garbage_lines_max = 100'000;            // not JSON-RPC; more end the channel
};

// Why a call has no result. `refused` carries the worker's own message and code.
struct CallFailure {
  enum class Cause { refused, timed_out, gone, too_large, busy };
  Cause cause = Cause::refused;
  std::int64_t code = 0;
  std::string message = {};
};
// plugin_call_failed, or plugin_unavailable when the worker has ended. `subject` names the call.
Error to_error(const CallFailure& failure, std::string_view subject);

using CallResult = std::expected<bj::value, CallFailure>;

struct CallOptions {
  std::chrono::milliseconds deadline{30'000};
  std::optional<bj::object> invocation = {};  // `paperclipInvocation`
};

// Handles the worker's requests and notifications. Called on the loop; must outlive the channel's
// run().
class Peer {
 public:
  virtual ~Peer() = default;
  // Runs concurrently with everything else; responses are sent in any order.
  virtual asio::awaitable<Reply> answer(Request request) = 0;
  // Returns whether the notification was useful; useless ones count against the flood limit. Must
  // not block.
  virtual bool hear(Notification notification) = 0;
  // Logs a line that is not a message. Rate-limited by the channel.
  virtual void unread(std::string_view why, std::string_view start_of_line) = 0;
};

// Newline-delimited JSON-RPC 2.0 in both directions at once over two descriptors. One thread.
class Channel {
 public:
  // Both descriptors are made non-blocking; they may be the same socket (give a duplicate).
  Channel(asio::any_io_executor executor, Fd in, Fd out, Peer& peer, ChannelLimits limits = {});
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  // Reads until the other side closes or breaks a limit. The reason becomes the error message
  // (`plugin_protocol`) of run() and of all open calls. After a plain end, open calls wait for
  // close(), because its caller knows how the worker ended.
  Task<> run();
  // Ends run(), and every open call with `gone` and this message.
  void close(std::string why);
  // Ends the tasks that still answer requests. Call it after run() has returned and before the
  // channel is destroyed.
  Task<> drain();

  asio::awaitable<CallResult> call(std::string method, bj::value params, CallOptions options = {});
  // False when the queue is full or the channel closed.
  bool notify(std::string_view method, const bj::value& params,
              const std::optional<bj::object>& invocation = {});

  std::size_t calls_in_flight() const { return pending_.size(); }
  bool closed() const { return closed_; }

 private:
  struct Pending;
  using Moment = std::chrono::steady_clock::time_point;

  Result<> take(std::string_view bytes);
  Result<> take_line(std::string_view line);
  Result<> dispatch(bj::object message);
  void settle(const bj::value& id, Reply reply);
  Result<> count_garbage(std::string_view why, std::string_view line);
  Result<> count_useless();
  Task<> serve(Request request);
  void expect_until(Moment deadline);
  Task<> watch_deadlines();
  bool send(std::string line);
  Task<> write_rest();

  asio::any_io_executor executor_;
  asio::posix::stream_descriptor in_;
  asio::posix::stream_descriptor out_;
  Peer& peer_;
  ChannelLimits limits_;
  bj::parser parser_;
  std::string line_;         // the beginning of an incomplete line
  std::size_t skipped_ = 0;  // bytes skipped of a line that is too long; 0: none
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, Pending*> pending_;
  // One alarm for the deadlines of all calls. Most calls are answered long before, so none of them
  // sets a kernel timer.
  Event alarm_;
  Moment alarm_at_ = Moment::max();
  bool watching_deadlines_ = false;
  std::size_t requests_ = 0;
  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0;
  std::size_t sent_of_first_ = 0;
  bool writing_ = false;
  bool closed_ = false;
  std::string why_closed_;
  std::uint64_t garbage_ = 0;
  Moment said_garbage_{};
  Moment second_began_{};
  std::uint64_t useless_in_second_ = 0;
  TaskGroup tasks_;
};

}  // namespace berth::plugins
