#pragma once

#include "core/call.hpp"
#include "core/rows/setup_session.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/templates/template_capture.hpp"

namespace berth::engine {

struct StartSetup {
  std::optional<core::TemplateId> template_id;  // absent: the active one, or the image
  std::optional<std::int64_t> ttl_seconds;
};
BOOST_DESCRIBE_STRUCT(StartSetup, (), (template_id, ttl_seconds))

struct FinishSetup {
  std::optional<bj::object> metadata;
};
BOOST_DESCRIBE_STRUCT(FinishSetup, (), (metadata))

struct CancelSetup {
  std::optional<std::string> reason;
};
BOOST_DESCRIBE_STRUCT(CancelSetup, (), (reason))

// How a user gets into a session's sandbox.
struct SetupConnectionPayload {
  core::SetupConnection type = core::SetupConnection::browser_terminal;
  core::LeaseId lease_id;
  std::optional<std::string> websocket_path = {};  // for our own terminal
  std::optional<std::string> command = {};         // if the provider gives access itself
  std::optional<std::string> token = {};
  Time expires_at;
};
BOOST_DESCRIBE_STRUCT(SetupConnectionPayload, (),
                      (type, lease_id, websocket_path, command, token, expires_at))

struct SetupView {
  core::SetupSession session;
  std::optional<SetupConnectionPayload> connection_payload;  // while it waits for the user
};
BOOST_DESCRIBE_STRUCT(SetupView, (), (session, connection_payload))

struct SetupFinished {
  core::SetupSession session;
  core::Template template_;
  std::optional<SetupConnectionPayload> connection_payload;
};
BOOST_DESCRIBE_STRUCT(SetupFinished, (), (session, template_, connection_payload))

// A user prepares an environment's sandbox by hand: it is created, the user works in it through a
// terminal, and it is captured as the environment's active template. One session per environment at
// a time; an unfinished session expires.
class SetupSessions {
 public:
  using Row = core::Stored<core::SetupSession>;

  SetupSessions(Services& services, const Catalog& catalog, LeaseLifecycle& leases,
                TemplateCapture& templates)
      : services_(services), catalog_(catalog), leases_(leases), templates_(templates) {}

  Task<SetupView> start(core::Call call, core::EnvironmentId environment, StartSetup wanted);
  Task<SetupView> get(core::Call call, core::SetupSessionId id);
  // A failed capture leaves the session unchanged, so that the user's work is not lost.
  Task<SetupFinished> finish(core::Call call, core::SetupSessionId id, FinishSetup wanted);
  Task<core::SetupSession> cancel(core::Call call, core::SetupSessionId id, CancelSetup wanted);

  // One sweeper step: ends expired sessions, and finishes or reverts a step that a server did not
  // complete.
  Task<> look_at(Row row);

 private:
  struct Begun {
    Row session;
    LeaseLifecycle::Row lease;
    std::optional<places::SetupRequest> request = {};  // for a session that starts
  };
  Result<Begun> intend(store::Session& session, const core::Call& call,
                       const core::EnvironmentId& environment, const StartSetup& wanted);
  // In the caller's transaction: ends the session, and its lease begins to end.
  Result<Begun> end(store::Session& session, const core::Call& call, Row row,
                    core::SetupEvent event, std::optional<std::string> reason);
  Task<core::SetupSession> end_now(core::Call call, Row row, core::SetupEvent event,
                                   std::optional<std::string> reason);
  Result<Row> promote(store::Session& session, const core::Call& call, Row row,
                      core::Template& made);
  struct Capture {
    Row session;
    TemplateCapture::Row made;
    core::LeaseRecord lease;
  };
  Result<Capture> intend_capture(store::Session& session, Row row, const FinishSetup& wanted);
  Task<SetupFinished> finished(const core::Call& call, const core::SetupSessionId& id);
  // Returns to waiting, so that a failed capture does not lose the user's work.
  Task<Row> take_back(Row capturing, std::string why);
  Task<Row> current(const core::Call& call, const core::SetupSessionId& id);
  Task<> give_back(core::LeaseId lease);
  // Includes the access details while it waits for the user.
  Task<SetupView> shown(core::SetupSession session);
  Task<std::optional<places::SetupAccess>> access_to(const core::SetupSession& session);

  Services& services_;
  const Catalog& catalog_;
  LeaseLifecycle& leases_;
  TemplateCapture& templates_;
};

}  // namespace berth::engine
