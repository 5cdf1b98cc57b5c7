#pragma once

#include "base/json.hpp"
#include "base/task.hpp"
#include "execution/execution.hpp"
#include "plugins/message.hpp"
#include "plugins/waiters.hpp"

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
  std::size_t chunk_max = 1'000'000;
  std::size_t total_max = std::size_t{256} << 20;
  std::size_t buffered_max = std::size_t{8} << 20;
  std::size_t frames_max = 10'000;
};

// The reading half of a terminal or byte stream that a worker holds. Bytes wait here until somebody
// reads them, within a limit; beyond it the stream has ended.
class Stream {
 public:
  Stream(asio::any_io_executor executor, StreamLimits limits);

  // The next bytes; nothing when the stream has ended and all was read.
  Task<std::optional<std::string>> read();
  bool ended() const { return ended_; }
  // Of the command; absent when the stream ended without it.
  std::optional<std::int64_t> exit_code() const { return exit_code_; }
  const std::string& why() const { return why_; }

  void take(std::string bytes);
  void end(std::optional<std::int64_t> exit_code, std::string why);

 private:
  StreamLimits limits_;
  Waiters waiters_;
  std::deque<std::string> chunks_;
  std::size_t buffered_ = 0;
  std::size_t total_ = 0;
  bool ended_ = false;
  std::optional<std::int64_t> exit_code_;
  std::string why_;
};

// The login terminal and the byte streams of one worker. One thread.
class StreamRoutes {
 public:
  explicit StreamRoutes(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  // Before the worker is asked to open it: frames may come before its answer.
  Result<std::shared_ptr<Stream>> reserve_login(const std::string& host_route_id);
  Result<std::shared_ptr<Stream>> reserve_duplex(const std::string& host_route_id);
  void bind(const std::string& host_route_id, const std::string& worker_session_id);
  void drop(const std::string& host_route_id);
  void end_all(const std::string& why);

  // `is_base64`: newer plugins send bytes so, older ones text. An error is a frame of a pair that
  // was never open, for which the worker is ended.
  Result<bool> take(const Notification& notification, bool is_base64);

 private:
  struct Route {
    std::shared_ptr<Stream> stream;
    std::string session = {};  // empty: not bound yet
    bool is_login = false;
  };
  struct Frame {
    std::string route;
    std::string session;
  };
  Route* find(const Notification& notification, bool is_login);

  asio::any_io_executor executor_;
  std::map<std::string, Route> routes_;                   // by host route id
  std::deque<std::string> closed_;                        // host route ids, oldest first
  std::map<std::string, std::deque<Notification>> held_;  // of a login that is not bound yet
};

}  // namespace berth::plugins
