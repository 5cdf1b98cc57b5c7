#pragma once

#include "base/async/task.hpp"
#include "core/access.hpp"
#include "http/server/message/message.hpp"

#include <chrono>
#include <string_view>

namespace berth::http {

// Identifies the caller. Called before every handler, also of open routes, because it rejects a
// foreign Host or Origin too.
class Gate {
 public:
  virtual ~Gate() = default;
  // Fails with unauthenticated, untrusted_host, untrusted_origin or local_user_not_trusted.
  virtual Task<core::Caller> identify(const Request& request) = 0;
};

// Receives the server's metrics. Called on the server's thread, so it must be quick.
class Observer {
 public:
  virtual ~Observer() = default;
  // `route` is the route's pattern, empty when none matched; `verb` is "get" ... "delete", or
  // "other".
  virtual void request_finished(std::string_view route, std::string_view verb, unsigned status,
                                std::chrono::nanoseconds took) = 0;
  virtual void connections_changed(std::size_t open) = 0;
  // Event streams, WebSockets and relayed requests.
  virtual void streams_changed(std::size_t open) = 0;
  // A stream was closed to make room for another client.
  virtual void stream_evicted() = 0;
};

}  // namespace berth::http
