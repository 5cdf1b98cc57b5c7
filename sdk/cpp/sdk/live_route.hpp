#pragma once

#include "sdk/call.hpp"
#include "sdk/values.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace berth::sdk {

// A login terminal or a channel that a hook has opened. What is sent here goes to the user of the
// terminal, even long after the hook has returned. Any thread, as long as the process lives.
class LiveRoute {
 public:
  // `session` is the worker's own id for it; the hook returns it.
  LiveRoute(Call& call, const OpenLogin& request, std::string session);
  LiveRoute(Call& call, const OpenChannel& request, std::string session);

  // For a login this is text; a character split between two pieces is rejoined.
  void say(std::string_view bytes);
  void end(std::optional<std::int64_t> exit_code);

  const std::string& route() const { return route_; }
  const std::string& session() const { return session_; }

 private:
  enum class Kind { login, channel };
  void notify(std::string_view method, bj::object more);

  HostLink& host_;
  Kind kind_;
  std::string route_;
  std::string session_;
  std::mutex lock_;
  std::string cut_;  // the beginning of a character
};

}  // namespace berth::sdk
