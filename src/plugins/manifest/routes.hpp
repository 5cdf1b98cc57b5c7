#pragma once

#include "base/async/condition.hpp"
#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "execution/execution.hpp"
#include "plugins/message.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// Where notifications of a worker go that belong to something that is open: the output of a
// command, a login terminal, a byte stream.
namespace berth::plugins {

// Takes the output of one `environmentExecute` while it is open.
class LiveOutput {
 public:
  virtual ~LiveOutput() = default;
  virtual void take(execution::OutputKind kind, std::string_view text) = 0;
};

// Which command an `execute.log` belongs to. The worker serves all companies in one process and
// could name the call of another, so as soon as two companies have commands open, nothing that is
// open then is listened to any more; its final result is still complete.
class OutputRoutes {
 public:
  void open(const std::string& invocation_id, const std::string& company, LiveOutput& output);
  void close(const std::string& invocation_id);
  // False when it belongs to nobody.
  bool take(const Notification& notification);

 private:
  struct Route {
    std::string company;
    LiveOutput* output = nullptr;
    std::size_t taken = 0;
    bool shut = false;
  };
  std::map<std::string, Route> routes_;
};

struct StreamLimits {
  std::size_t total_max = std::size_t{256} << 20;
  std::size_t buffered_max = std::size_t{8} << 20;
  std::size_t frames_max = 10'000;
  std::size_t malformed_max = 100;
};

// Byte streams that all plugins of a server may have open at a time.
inline constexpr std::size_t streams_max = 128;

// Why a stream is over.
struct StreamEnd {
  enum class Cause {
    exited,       // the worker said so; without a code where it knows none
    closed,       // by us
    timed_out,    // it was open for too long
    worker_gone,  // the worker ended
    breach,       // the worker broke a limit
  };
  Cause cause = Cause::exited;
  std::optional<std::int64_t> exit_code = {};
  std::string why = {};
};

// The reading half of a terminal or byte stream that a worker holds. Bytes wait here until somebody
// reads them, within a limit; beyond it the stream has ended. What came before an end can be read
// after it.
class Stream {
 public:
  Stream(asio::any_io_executor executor, StreamLimits limits);

  // The next bytes; nothing when the stream has ended and all was read.
  Task<std::optional<std::string>> read();
  const std::optional<StreamEnd>& end() const { return end_; }
  Condition& news() { return waiters_; }

  void take(std::string bytes);
  void take_malformed();
  // The first end counts.
  void finish(StreamEnd end);

 private:
  StreamLimits limits_;
  Condition waiters_;
  std::deque<std::string> chunks_;
  std::size_t buffered_ = 0;
  std::size_t total_ = 0;
  std::size_t malformed_ = 0;
  std::optional<StreamEnd> end_;
};

// How bytes of streams are written in frames: newer plugins send base64, older ones text.
enum class Payload { text, base64 };

// The login terminal and the byte streams of one worker. One thread.
class StreamRoutes {
 public:
  explicit StreamRoutes(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  // Before the worker is asked to open it: frames may come before its answer, and are held back
  // until then.
  Result<std::shared_ptr<Stream>> reserve_login(const std::string& host_route_id);
  std::shared_ptr<Stream> reserve_duplex(const std::string& host_route_id);
  // An error is a frame that had come for another session of this route: see take().
  Result<> bind(const std::string& host_route_id, const std::string& worker_session_id,
                Payload payload);
  void drop(const std::string& host_route_id);
  // The worker is gone, and all that it held.
  void end_all(const std::string& why);

  bool holds(const std::string& host_route_id) const { return routes_.contains(host_route_id); }
  bool has_login() const;
  std::size_t duplex_count() const;

  // False for what belongs to nobody. An error is a frame of a pair that was never open, for which
  // the worker is ended.
  Result<bool> take(const Notification& notification, Payload payload);

 private:
  struct Route {
    std::shared_ptr<Stream> stream;
    bool is_login = false;
    std::string session = {};  // empty: not bound yet
    std::deque<Notification> held = {};
    std::size_t held_bytes = 0;
  };
  Route* find(const Notification& notification, bool is_login);
  Result<bool> take_bound(Route& route, const Notification& notification, Payload payload) const;
  Result<bool> take_unknown(const Notification& notification, bool is_login) const;

  asio::any_io_executor executor_;
  std::map<std::string, Route> routes_;  // by host route id
  std::deque<std::string> closed_;       // host route ids, oldest first
};

}  // namespace berth::plugins
