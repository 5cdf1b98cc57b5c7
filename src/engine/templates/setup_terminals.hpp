#pragma once

#include "engine/leases/lease_terminals.hpp"
#include "engine/templates/setup_sessions.hpp"

#include <map>

namespace berth::engine {

// The only answer that ever holds the token.
struct SetupTerminalToken {
  std::string id;
  std::string token;
  Time expires_at;
  core::SetupSessionId setup_session_id;
  core::EnvironmentId environment_id;
  core::SetupConnection connection_type = core::SetupConnection::browser_terminal;
  std::string websocket_path;
};
BOOST_DESCRIBE_STRUCT(SetupTerminalToken, (),
                      (id, token, expires_at, setup_session_id, environment_id, connection_type,
                       websocket_path))

// Tickets to the terminal of a setup session, for a page that can send no header when it connects:
// the token is the first thing that it says. Whoever asked for it is who works in the terminal.
// Only the server that holds the sandbox can open it, so only that one knows its tickets, by their
// hashes; after a restart another is asked for.
class SetupTerminals {
 public:
  SetupTerminals(Services& services, SetupSessions& sessions, LeaseTerminals& terminals)
      : services_(services), sessions_(sessions), terminals_(terminals) {}

  // Good for five minutes, and no longer than the session. `conflict` for one that does not wait
  // for its user, `unprocessable` where the provider lets them in by itself.
  Task<SetupTerminalToken> issue(core::Call call, core::SetupSessionId session);

  // Whether there is such a ticket at all, before anybody says its token.
  Result<> expect(const core::SetupSessionId& session, const std::string& id);

  struct Presented {
    core::SetupSessionId session;
    std::string id;
    std::string token;
    core::TerminalSize size = {};
  };
  struct Opened {
    execution::LiveCommandPtr command;
    core::Caller holder;
  };
  // The same terminal each time. `unauthenticated`, and always the same, for whatever is no ticket
  // to this session; it is told before anything else is looked at.
  Task<Opened> open(Presented ticket);
  // A ticket is worth no more than the key that it was asked for with, also after it was used.
  Task<> expect_still_good(core::Caller holder);

 private:
  struct Ticket {
    std::string token_hash;
    core::SetupSessionId session;
    core::Caller holder;
    Time expires_at;
  };
  void forget_expired();

  Services& services_;
  SetupSessions& sessions_;
  LeaseTerminals& terminals_;
  std::map<std::string, Ticket> tickets_;  // by id
};

}  // namespace berth::engine
