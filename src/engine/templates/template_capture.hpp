#pragma once

#include "core/rows/lease.hpp"
#include "core/rows/template.hpp"
#include "engine/leases/lease_lifecycle.hpp"

namespace berth::engine {

// The template is one of an environment with this config from now on.
void link(core::Template& row, const bj::object& config);

// A template whose capture was never answered: its provider may have it, under a name that nobody
// here knows. It waits for an operator.
bool is_unanswered(const core::Template& row);

// Captures places and deletes what was captured: the intention is recorded, the driver acts, the
// fact is recorded. Whoever finds a template in any state can bring it to its end.
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
  // What the driver made of it, on the row: `ready`. `also` changes the row before it is written,
  // and writes what belongs to the same transaction. Where that fails, nothing is left.
  using Also = std::function<Result<>(store::Session&, core::Template&)>;
  Task<Row> capture(Row intended, core::LeaseRecord lease, Also also);

  // In the caller's transaction: image_in_use while something stands on it.
  Result<Row> begin_delete(store::Session& session, Row row);
  // What may be left of a capture that failed.
  enum class Left { something, nothing };
  // Brings one that nobody wants, or that nobody finished, to its end. Where that fails, the row
  // says why and when the next attempt is due; a template whose name its provider never told waits
  // for an operator instead.
  Task<Row> settle(Row row, Left left = Left::something);
  // On an operator's word, in the caller's transaction: the template that a row waits for is this
  // one, and is deleted with it; or there is none. `conflict` where the row waits for nobody, or
  // the template is another row's.
  Result<Row> adopt(store::Session& session, Row row, std::string template_ref);
  Result<Row> force_end(store::Session& session, Row row, const std::string& reason);
  // One look of the sweeper.
  Task<> look_at(Row row);

 private:
  Task<> let_go_on(core::Template row);
  Task<Row> park(Row row);
  Task<Row> record_captured(Row intended, execution::CapturedTemplate captured, Also also);

  Services& services_;
  LeaseLifecycle& leases_;
};

}  // namespace berth::engine
