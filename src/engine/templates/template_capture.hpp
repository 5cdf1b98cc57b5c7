#pragma once

#include "core/rows/lease.hpp"
#include "core/rows/template.hpp"
#include "engine/leases/lease_lifecycle.hpp"

namespace berth::engine {

// Links the template to an environment's current config.
void link(core::Template& row, const bj::object& config);

// A template whose capture got no response: its provider may have it, under a name unknown here. It
// waits for an operator.
bool is_unanswered(const core::Template& row);

// Captures places and deletes captured templates: the intent is recorded, the driver acts, the
// result is recorded. Any server can bring a template to its end from any state.
class TemplateCapture {
 public:
  using Row = core::Stored<core::Template>;

  TemplateCapture(Services& services, LeaseLifecycle& leases)
      : services_(services), leases_(leases) {}

  struct Request {
    std::string name;
    enum class Stays { until_deleted, while_used } stays = Stays::until_deleted;
  };
  // In the caller's transaction: a template `capturing`.
  Result<Row> intend(store::Session& session, const core::LeaseRecord& lease, Request request);
  // Captures the place and records the driver's response: `ready`. `also` changes the row before it
  // is written, and writes what belongs to the same transaction. If that fails, nothing is left.
  using Also = std::function<Result<>(store::Session&, core::Template&)>;
  Task<Row> capture(Row intended, core::LeaseRecord lease, Also also);

  // In the caller's transaction: image_in_use while something uses it.
  Result<Row> begin_delete(store::Session& session, Row row);
  // What may be left of a failed capture.
  enum class Left { something, nothing };
  // Brings an unwanted or unfinished template to its end. If that fails, the row records why and
  // when the next attempt is due. A template whose provider reference is unknown waits for an
  // operator instead.
  Task<Row> settle(Row row, Left left = Left::something);
  // On an operator's order, in the caller's transaction: names the template that a row waits for,
  // which is deleted with it, or states that there is none. `conflict` if the row does not wait for
  // an operator, or the template belongs to another row.
  Result<Row> adopt(store::Session& session, Row row, std::string template_ref);
  Result<Row> force_end(store::Session& session, Row row, const std::string& reason);
  // One sweeper step.
  Task<> look_at(Row row);

 private:
  Task<> let_go_on(core::Template row);
  Task<Row> park(Row row);
  Task<Row> record_captured(Row intended, places::CapturedTemplate captured, Also also);

  Services& services_;
  LeaseLifecycle& leases_;
};

}  // namespace berth::engine
