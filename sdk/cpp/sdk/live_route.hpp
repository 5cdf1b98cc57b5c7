#pragma once

#include "sdk/call.hpp"
#include "sdk/values.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace berth::sdk {

// A login terminal or a channel that a hook has opened, as the host hears of it: what is said here
// goes to whoever sits in front of it, also long after the hook has returned. Any thread, as long
// as the process lives.
class LiveRoute {
 public:
  // `session` is the worker's own name for it: the hook answers with it.
  LiveRoute(Call& call, const OpenLogin& request, std::string session);
  LiveRoute(Call& call, const OpenChannel& request, std::string session);

  // Of a login text; a character that is cut between two pieces is mended.
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
