#include "base/fault_point.hpp"
#include "engine/journal.hpp"
#include "engine/runs/run_dispatcher.hpp"
#include "engine/runs/runs.hpp"
#include "store/retention.hpp"

namespace berth::engine {

Task<core::Run> Runs::remove(core::Call call, core::RunId id) {
  std::int64_t freed = 0;
  const auto work = [&](store::Session& s) -> Result<core::Run> {
    BERTH_TRY(auto row, store::find_run(s, core::Reach::of(call.who), id));
    if (!core::is_final(row.value.status)) {
      return fail(Errc::conflict, "Run " + id.str() + " is not over yet",
                  "cancel it first, or wait for its end");
    }
    BERTH_TRY(freed, store::run_bytes(s, id));
    BERTH_DO(store::delete_run(s, id));
    BERTH_DO(record(s, services_, call,
                    {row.value.company_id,
                     "heartbeat.deleted",
                     "heartbeat_run",
                     id.str(),
                     {{"status", name_of(row.value.status)}, {"logBytes", row.value.log_bytes}}}));
    return std::move(row.value);
  };
  if (dispatcher_.has(id)) {
    // Its lease is about to be settled, and the log may still be open.
    BERTH_CO_DO(co_await services_.store.read(
        [&](store::Session& s) { return store::find_run(s, core::Reach::of(call.who), id); }));
    co_return fail(Errc::conflict, "The server still works on run " + id.str(),
                   "cancel it, wait until its lease is released, then repeat");
  }
  BERTH_CO_TRY(core::Run removed, co_await services_.store.write(work));
  fault_point("run.deleted");
  // If another server has the log, that server removes it in its search for lost logs.
  BERTH_CO_DO(logs_.remove(id));
  guards_.quotas.add(removed.company_id, -freed);
  services_.feed.changed(removed.company_id);
  services_.feed.changed(id);
  co_return removed;
}

}  // namespace berth::engine
