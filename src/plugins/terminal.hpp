#pragma once

#include "base/task.hpp"
#include "plugins/host.hpp"
#include "plugins/routes.hpp"

#include <memory>
#include <optional>
#include <string>

namespace berth::plugins {

enum class LoginCommand { claude, codex };

// An open login terminal or byte stream of a sandbox. Whoever opened it closes it, also after its
// end. One thread.
class Terminal {
 public:
  enum class Kind { login, duplex };

  // The worker is asked with what `params` hold beside the route's id.
  static Task<std::shared_ptr<Terminal>> open(std::shared_ptr<Supervisor> plugin, Kind kind,
                                              std::string host_route_id, bj::object params);
  Terminal(std::shared_ptr<Supervisor> plugin, Kind kind, Dialect dialect,
           std::string host_route_id, std::shared_ptr<Stream> stream);

  // The next bytes; nothing at the end.
  Task<std::optional<std::string>> read() { return stream_->read(); }
  Task<> write(std::string bytes);
  Task<> stop();
  // By the route's id alone, so it works also when the answer to open was lost. A worker that does
  // not confirm it is ended: it might still hold the terminal.
  Task<> close();

  std::optional<std::int64_t> exit_code() const { return stream_->exit_code(); }
  bool ended() const { return stream_->ended(); }

 private:
  std::string method(std::string_view verb) const;
  bj::object ids() const;
  Task<bj::value> ask(std::string_view verb, bj::object params,
                      std::chrono::milliseconds deadline) const;

  std::shared_ptr<Supervisor> plugin_;
  Kind kind_;
  Dialect dialect_;
  std::string host_route_id_;
  std::string session_;
  std::shared_ptr<Stream> stream_;
};

}  // namespace berth::plugins
