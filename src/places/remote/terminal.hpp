#pragma once

#include "base/async/task.hpp"
#include "places/remote/transport.hpp"

#include <memory>
#include <optional>
#include <string>

namespace berth::places::remote {

// An open login terminal or byte stream of a sandbox. The caller that opened it closes it, also
// after its end. Its output is never logged, because it may be a token. One thread.
class Terminal {
 public:
  enum class Kind { login, duplex };

  // The request to the worker holds `params` and the route's id.
  static Task<std::shared_ptr<Terminal>> open(std::shared_ptr<Supervisor> plugin, Kind kind,
                                              std::string host_route_id, bj::object params);
  Terminal(std::shared_ptr<Supervisor> plugin, Kind kind, Dialect dialect,
           std::string host_route_id, std::shared_ptr<Stream> stream);

  // The next bytes; nothing at the end.
  Task<std::optional<std::string>> read() { return stream_->read(); }
  // A write that is too large, or that comes when too many are unanswered, ends the stream.
  Task<> write(std::string bytes);
  // Requests the end of the command.
  Task<> stop();
  // Uses only the route's id, so it works even when the response to open was lost. A worker that
  // does not confirm it is ended, because it might still hold the terminal.
  Task<> close();

  Kind kind() const { return kind_; }
  const std::string& route() const { return host_route_id_; }
  Stream& stream() { return *stream_; }
  const std::optional<StreamEnd>& end() const { return stream_->end(); }

 private:
  class Pending;
  std::string method(std::string_view verb) const;
  bj::object ids() const;
  Result<> expect_room();
  Task<bj::value> ask(std::string_view verb, bj::object params,
                      std::chrono::milliseconds deadline) const;

  std::shared_ptr<Supervisor> plugin_;
  Kind kind_;
  Dialect dialect_;
  std::string host_route_id_;
  std::string session_;
  std::shared_ptr<Stream> stream_;
  std::size_t pending_ = 0;  // writes and stops without a response yet
};

}  // namespace berth::places::remote
