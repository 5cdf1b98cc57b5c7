#pragma once

#include "core/enums.hpp"
#include "keepers/command.hpp"
#include "places/live_command.hpp"
#include "places/remote_files.hpp"
#include "places/snapshots.hpp"

// How an environment is reached. A driver gets values and returns facts; it neither decides nor
// remembers. The lease contains everything that it needs to find, follow, end and remove what it
// started. So each operation works just as well after a server restart.
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
  bool required = false;                     // acquire fails if none answers
};

// A person will prepare the place by hand, and the result will be captured.
struct SetupRequest {
  core::SetupSessionId session_id;
  std::optional<std::string> source_ref = {};  // of the template that it starts from
  std::optional<core::TemplateKind> source_kind = {};
  Time expires_at = {};
};

// The provider's own access to a place that is being prepared. Never stored.
struct SetupAccess {
  core::SetupConnection type = core::SetupConnection::unknown;
  std::optional<std::string> command = {};
  std::optional<std::string> token = {};
  std::optional<Time> expires_at = {};
};

struct AcquireRequest {
  PlaceRef lease;
  Callback callback = {};
  // A sandbox to resume first; if it no longer exists, a new one is made.
  std::optional<std::string> reusable_id = {};
  std::optional<SetupRequest> setup = {};  // absent: for a run, or for a user's commands
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

// All operations may be repeated. Arguments passed by reference must live until the answer.
class Driver : public execution::Execution {
 public:
  // Whether the place can be used, without a lease. The report describes problems with the place;
  // an error means that it could not be tested.
  virtual Task<ProbeReport> probe(const AcquireRequest& request) = 0;

  // Checks that a config that is about to be saved names only what exists: otherwise
  // `unprocessable`, with the field's pointer.
  virtual Task<> check_config(const bj::object& config);

  virtual Task<Acquired> acquire(const AcquireRequest& request) = 0;
  // Whether places of this config are found by our keys. If they are not, a place whose acquire was
  // not answered has no name that this server knows.
  virtual bool finds_by_key(const bj::object& /*config*/) const { return true; }
  // Whether places of this config are processes and files of the server that made them, which no
  // other server can reach.
  virtual bool stays_on_its_server(const bj::object& /*config*/) const { return false; }

  // Ends what still runs and removes what the lease left in the place, except for what another
  // lease may reuse. Succeeds if it no longer exists.
  virtual Task<> release(const PlaceRef& lease, core::LeaseEvent how) = 0;
  // The same, including what another lease might have reused.
  virtual Task<> destroy(const PlaceRef& lease) = 0;

  // Operations on a lease's place as a whole. execution_unsupported if it is not a sandbox, or its
  // provider cannot: see providers::Provider.
  virtual Task<execution::CapturedTemplate> capture_template(
      const PlaceRef& lease, const execution::CaptureTemplate& request);
  // `place` describes where it was captured; its lease need not exist any more.
  virtual Task<bool> delete_template(const PlaceRef& place,
                                     const execution::DeleteTemplate& request);
  // Empty if people use our own terminal.
  virtual Task<std::optional<SetupAccess>> setup_access(const PlaceRef& lease);
  // An interactive login for an agent's own program in the place. execution_unsupported where
  // ordinary terminals serve for that: everywhere but in plugin sandboxes.
  virtual Task<execution::LiveCommandPtr> open_login(const PlaceRef& lease,
                                                     execution::LoginCommand command);
  // A command that gets input while it runs, for places where start() cannot do that. Empty if
  // start() can; execution_unsupported if there is no way.
  virtual Task<execution::LiveCommandPtr> open_stream(const PlaceRef& lease, const Command& command,
                                                      execution::DuplexBridge bridge);
  virtual Task<execution::Changes> changes(const PlaceRef& lease);
  virtual Task<> freeze(const PlaceRef& lease);
  virtual Task<> thaw(const PlaceRef& lease);

  // Closes connections before the driver is destroyed; commands keep running. Called last, when no
  // other operation is in progress.
  virtual Task<> close();

  // The leases that still have something on this machine, whether or not the server knows them.
  virtual Task<std::vector<core::LeaseId>> held() { co_return std::vector<core::LeaseId>{}; }
  // The same for sandboxes, which may outlive their leases.
  virtual Task<std::vector<HeldSandbox>> held_sandboxes() { co_return std::vector<HeldSandbox>{}; }
  virtual Task<std::vector<execution::HeldTemplate>> held_templates() {
    co_return std::vector<execution::HeldTemplate>{};
  }
};

}  // namespace berth::drivers
