#pragma once

#include "base/async/condition.hpp"
#include "base/async/task.hpp"
#include "base/json/json.hpp"
#include "keepers/command.hpp"
#include "plugins/message.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// Routes a worker's notifications to what is open: command output, a login terminal, or a byte
// stream.
namespace berth::plugins {

// Receives the output of one `environmentExecute` while it is open.
class LiveOutput {
 public:
  virtual ~LiveOutput() = default;
  virtual void take(keepers::OutputKind kind, std::string_view text) = 0;
};

// Finds the command that an `execute.log` belongs to. One worker process serves all companies and
// could name another company's call. So once two companies have commands open, live output of all
// commands open then is ignored; their final results are still complete.
class OutputRoutes {
 public:
  void open(const std::string& invocation_id, const std::string& company, LiveOutput& output);
  void close(const std::string& invocation_id);
  // False when it does not belong to an open command.
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

// Byte streams that all plugins of a server may have open at the same time.
inline constexpr std::size_t streams_max = 128;

// Why a stream has ended.
struct StreamEnd {
  enum class Cause {
    exited,       // reported by the worker; without a code if it does not know one
    closed,       // by us
    timed_out,    // it was open for too long
    worker_gone,  // the worker ended
    breach,       // the worker broke a limit
  };
  Cause cause = Cause::exited;
  std::optional<std::int64_t> exit_code = {};
  std::string why = {};
};

// The reading half of a worker's terminal or byte stream. Bytes wait here until they are read,
// within a limit; exceeding it ends the stream. Bytes that came before the end can be read after
// it.
class Stream {
 public:
  Stream(asio::any_io_executor executor, StreamLimits limits);

  // The next bytes; nothing when the stream has ended and everything was read.
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

// How stream bytes are encoded in frames: newer plugins send base64, older ones text.
enum class Payload { text, base64 };

// The login terminal and the byte streams of one worker. One thread.
class StreamRoutes {
 public:
  explicit StreamRoutes(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  // Call this before the worker is asked to open it: frames may come before its response, and are
  // held back until then.
  Result<std::shared_ptr<Stream>> reserve_login(const std::string& host_route_id);
  std::shared_ptr<Stream> reserve_duplex(const std::string& host_route_id);
  // Fails if a frame had come for another session of this route: see take().
  Result<> bind(const std::string& host_route_id, const std::string& worker_session_id,
                Payload payload);
  void drop(const std::string& host_route_id);
  // The worker has ended, and with it everything that it held.
  void end_all(const std::string& why);

  bool holds(const std::string& host_route_id) const { return routes_.contains(host_route_id); }
  bool has_login() const;
  std::size_t duplex_count() const;

  // False for a frame that does not belong to a known stream. Fails for a pair that was never open;
  // the worker is then ended.
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
