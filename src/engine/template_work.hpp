#pragma once

#include "core/lease.hpp"
#include "core/template.hpp"
#include "engine/lease_work.hpp"

namespace berth::engine {

// The template is one of an environment with this config from now on.
void link(core::Template& row, const bj::object& config);

// Captures places and deletes what was captured: the intention is recorded, the driver acts, the
// fact is recorded. Whoever finds a template in any state can bring it to its end.
class TemplateWork {
 public:
  using Row = core::Stored<core::Template>;

  TemplateWork(Means& means, LeaseWork& leases) : means_(means), leases_(leases) {}

  struct Wish {
    std::string name;
    enum class Stays { until_deleted, while_used } stays = Stays::until_deleted;
  };
  // In the caller's transaction: a template `capturing`.
  Result<Row> intend(store::Session& session, const core::LeaseRecord& lease, Wish wish);
  // What the driver made of it, on the row: `ready`. `also` changes the row before it is written,
  // and writes what belongs to the same transaction. Where that fails, nothing is left.
  using Also = std::function<Result<>(store::Session&, core::Template&)>;
  Task<Row> capture(Row intended, core::LeaseRecord lease, Also also);

  // In the caller's transaction: image_in_use while something stands on it.
  Result<Row> begin_delete(store::Session& session, Row row);
  // Brings one that nobody wants, or that nobody finished, to its end. Where that fails, the row
  // says why and when the next attempt is due.
  Task<Row> settle(Row row);
  // One look of the sweeper.
  Task<> look_at(Row row);

 private:
  Task<> let_go_on(core::Template row);
  Task<Row> record_captured(Row intended, execution::CapturedTemplate captured, Also also);

  Means& means_;
  LeaseWork& leases_;
};

}  // namespace berth::engine
