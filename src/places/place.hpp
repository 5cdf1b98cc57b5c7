#pragma once

#include "core/enums.hpp"
#include "places/abilities.hpp"

#include <optional>
#include <string>
#include <vector>

// Where work runs. A place gets values and returns facts; it neither decides nor remembers. The
// reference contains everything that is needed to find, follow, end and remove what was started. So
// each operation works just as well after a server restart.
namespace berth::places {

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

// One step of an environment test.
struct ProbeStep {
  std::string name;  // "connect", "keeper", "workspace", "callback", ...
  bool ok = false;
  std::int64_t duration_ms = 0;
  std::string message = {};
  std::optional<std::string> code = {};
  std::optional<std::string> remedy = {};
};
BOOST_DESCRIBE_STRUCT(ProbeStep, (), (name, ok, duration_ms, message, code, remedy))

struct ProbeReport {
  bool ok = false;
  core::DriverKind driver = core::DriverKind::local;
  std::string summary = {};
  std::optional<bj::object> details = {};
  std::vector<ProbeStep> steps = {};
};
BOOST_DESCRIBE_STRUCT(ProbeReport, (), (ok, driver, summary, details, steps))

// All operations may be repeated. Arguments passed by reference must live until the answer.
class Place {
 public:
  virtual ~Place() = default;

  // Whether the place can be used, without a lease. The report describes problems with the place;
  // an error means that it could not be tested.
  virtual Task<ProbeReport> probe(const AcquireRequest& request) = 0;
  // Checks that a config that is about to be saved names only what exists: otherwise
  // `unprocessable`, with the field's pointer.
  virtual Task<> check_config(const bj::object& config) = 0;

  virtual Task<Acquired> acquire(const AcquireRequest& request) = 0;
  // Ends what still runs and removes what the lease left in the place, except for what another
  // lease may reuse. Succeeds if it no longer exists.
  virtual Task<> release(const PlaceRef& lease, core::LeaseEvent how) = 0;
  // The same, including what another lease might have reused.
  virtual Task<> destroy(const PlaceRef& lease) = 0;

  // The leases or sandboxes that still have something on this machine, whether or not the server
  // knows them.
  virtual Task<std::vector<PlaceKey>> held() = 0;
  // Closes connections before the object is destroyed; commands keep running. Called last, when no
  // other operation is in progress.
  virtual Task<> close() = 0;

  // Valid as long as the place. It does not depend on a lease: an ability may still refuse one.
  virtual Abilities abilities() = 0;
};

}  // namespace berth::places
