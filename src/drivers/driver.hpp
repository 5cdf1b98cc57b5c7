#pragma once

#include "core/enums.hpp"
#include "execution/execution.hpp"
#include "execution/live_command.hpp"
#include "execution/remote_files.hpp"
#include "execution/templates.hpp"

// How an environment is reached. A driver is given values and returns facts; it neither decides nor
// remembers. Everything it needs to find, follow, end and remove what it started is in the lease
// that it is given, so each verb works as well after a restart of the server as before it.
namespace berth::drivers {

using execution::Command;
using execution::Ended;
using execution::EndOfInput;
using execution::HeldSandbox;
using execution::Input;
using execution::NoStdin;
using execution::Outcome;
using execution::OutputKind;
using execution::OutputPiece;
using execution::OutputTaker;
using execution::PlaceRef;
using execution::PrivateAddresses;
using execution::ProbeStep;
using execution::SignalNumber;
using execution::Started;
using execution::StdinBytes;
using execution::StdinPipe;
using execution::Workspace;

// How a process in the place may reach this server.
struct Callback {
  std::vector<std::string> candidates = {};  // origins, best first
  bool required = false;                     // when none answers, acquire fails
};

// Somebody is to prepare the place by hand, for what it becomes to be captured.
struct SetupRequest {
  core::SetupSessionId session_id;
  std::optional<std::string> source_ref = {};  // of the template that it begins with
  std::optional<core::TemplateKind> source_kind = {};
  Time expires_at = {};
};

// How the provider itself lets somebody into a place that is being prepared. Never kept.
struct SetupAccess {
  core::SetupConnection type = core::SetupConnection::unknown;
  std::optional<std::string> command = {};
  std::optional<std::string> token = {};
  std::optional<Time> expires_at = {};
};

struct AcquireRequest {
  PlaceRef lease;
  Callback callback = {};
  // The id of a sandbox to resume first; when it is gone a fresh one is made.
  std::optional<std::string> reusable_id = {};
  std::optional<SetupRequest> setup = {};  // absent: for a run, or for somebody's commands
};

struct Acquired {
  std::string provider;  // "local", "ssh", "fake", ...
  std::optional<std::string> provider_lease_id = {};
  bj::object metadata = {};
  std::optional<Time> expires_at = {};
  bool resumed = false;
};

struct ProbeReport {
  bool ok = false;
  core::DriverKind driver = core::DriverKind::local;
  std::string summary = {};
  std::optional<bj::object> details = {};
  std::vector<ProbeStep> steps = {};
};
BOOST_DESCRIBE_STRUCT(ProbeReport, (), (ok, driver, summary, details, steps))

// All verbs may be repeated. References are to what the caller keeps until the answer.
class Driver : public execution::Execution {
 public:
  // Whether the place can be used, without a lease. What is wrong with the place is in the report;
  // an error is what kept us from looking.
  virtual Task<ProbeReport> probe(const AcquireRequest& request) = 0;

  // Whether a config that is about to be saved names only what is there: `unprocessable`, with the
  // pointer of the field, where it does not.
  virtual Task<> check_config(const bj::object& config);

  virtual Task<Acquired> acquire(const AcquireRequest& request) = 0;
  // Whether places of this config are found by the keys that we gave them. Where they are not, one
  // whose acquire was not answered has no name that anybody here knows.
  virtual bool finds_by_key(const bj::object& /*config*/) const { return true; }
  // Whether places of this config are processes and files of the server that made them, out of the
  // reach of every other.
  virtual bool stays_on_its_server(const bj::object& /*config*/) const { return false; }

  // Ends what still runs and removes what the lease left in the place, but for what may serve
  // another lease. What is already gone is fine.
  virtual Task<> release(const PlaceRef& lease, core::LeaseEvent how) = 0;
  // The same, and what might have served another lease too.
  virtual Task<> destroy(const PlaceRef& lease) = 0;

  // The place of a lease as a whole. Refused with execution_unsupported where it is no sandbox, or
  // its provider cannot: see providers::Provider.
  virtual Task<execution::CapturedTemplate> capture_template(
      const PlaceRef& lease, const execution::CaptureTemplate& request);
  // `place` is what is known of where it was captured; no lease has to be left of it.
  virtual Task<bool> delete_template(const PlaceRef& place,
                                     const execution::DeleteTemplate& request);
  // Nothing where people get in by our own terminal.
  virtual Task<std::optional<SetupAccess>> setup_access(const PlaceRef& lease);
  // The login of an agent's own program in the place. Refused with execution_unsupported where its
  // terminals do: everywhere but in sandboxes of plugins.
  virtual Task<execution::LiveCommandPtr> open_login(const PlaceRef& lease,
                                                     execution::LoginCommand command);
  // A command that is given its input while it runs, where start() does not do so. Nothing where it
  // does; execution_unsupported where there is no way.
  virtual Task<execution::LiveCommandPtr> open_stream(const PlaceRef& lease, const Command& command,
                                                      execution::DuplexBridge bridge);
  virtual Task<execution::Changes> changes(const PlaceRef& lease);
  virtual Task<> freeze(const PlaceRef& lease);
  virtual Task<> thaw(const PlaceRef& lease);

  // Lets go of connections before the driver goes; what runs goes on. Called last, when no other
  // verb is under way.
  virtual Task<> close();

  // The leases of which this machine itself still holds something, whoever knows of them.
  virtual Task<std::vector<core::LeaseId>> held() { co_return std::vector<core::LeaseId>{}; }
  // The same of sandboxes, which may outlive their leases.
  virtual Task<std::vector<HeldSandbox>> held_sandboxes() { co_return std::vector<HeldSandbox>{}; }
  virtual Task<std::vector<execution::HeldTemplate>> held_templates() {
    co_return std::vector<execution::HeldTemplate>{};
  }
};

}  // namespace berth::drivers
