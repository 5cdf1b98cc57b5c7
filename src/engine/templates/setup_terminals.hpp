#pragma once

#include "engine/leases/lease_terminals.hpp"
#include "engine/templates/setup_sessions.hpp"

#include <map>

namespace berth::engine {

// The only response that ever contains the token.
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

// Tickets to a setup session's terminal, for a page that cannot send a header when it connects: the
// token is its first message. The terminal acts as the caller that requested the ticket. Only the
// server that holds the sandbox can open it, so only that server knows its tickets, by their
// hashes. After a restart, clients request a new one.
class SetupTerminals {
 public:
  SetupTerminals(Services& services, SetupSessions& sessions, LeaseTerminals& terminals)
      : services_(services), sessions_(sessions), terminals_(terminals) {}

  // Valid for five minutes, and no longer than the session. `conflict` if the session does not wait
  // for its user, `unprocessable` if the provider gives access itself.
  Task<SetupTerminalToken> issue(core::Call call, core::SetupSessionId session);

  // Whether such a ticket exists at all, before the client sends its token.
  Result<> expect(const core::SetupSessionId& session, const std::string& id);

  struct Presented {
    core::SetupSessionId session;
    std::string id;
    std::string token;
    core::TerminalSize size = {};
  };
  struct Opened {
    places::LiveCommandPtr command;
    core::Caller holder;
  };
  // Opens the same terminal each time. The same `unauthenticated` error for anything that is not a
  // ticket to this session, before any other check.
  Task<Opened> open(Presented ticket);
  // A ticket is valid only while the key that requested it is, even after use.
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
