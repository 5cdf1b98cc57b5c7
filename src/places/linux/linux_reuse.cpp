#include "base/async/offload.hpp"
#include "base/fault_point.hpp"
#include "base/files.hpp"
#include "places/linux/inside.hpp"
#include "places/linux/lease_metadata.hpp"
#include "places/linux/linux.hpp"

#include <unistd.h>

// What happens to a sandbox between one lease and the next.
namespace berth::places {
namespace {

// Longer than a sandbox waits for its next lease before the server destroys it. So it expires by
// itself only if there is no server.
constexpr std::int64_t idle_ms = 45LL * 60 * 1000;

// Updates what the next lease reads about the sandbox to match the new one.
Result<> note_remade(const std::string& file, const keeper::Confined& confined) {
  BERTH_TRY(const std::string text, read_file(file, facts_bytes_max));
  BERTH_TRY(bj::object facts, decode_text<bj::object>(text));
  facts["isolation"] = isolation_of(confined);
  facts["initPid"] = confined.init_pid;
  return keeper::Draft{file}.publish(encode_text(facts));
}

}  // namespace

Task<> Linux::empty(std::string id) {
  if (::access(box_of(keepers_.folder_of(id)).c_str(), F_OK) == 0) {
    co_return fail(Errc::execution_unsupported, "a sandbox without namespaces is used once");
  }
  BERTH_CO_TRY(const std::optional<keeper::Listing> listing,
               co_await keepers_.ask<keeper::Listing>(id, keeper::List{}));
  if (!listing) co_return Result<>{};
  for (const keeper::Listed& live : listing->live) {
    BERTH_CO_DO(co_await keepers_.cancel(id, live.exec_id, 0));
  }
  // It listens in the sandbox that is about to end.
  if (egress_gateway_ != nullptr) BERTH_CO_DO(co_await egress_gateway_->close(id));
  BERTH_CO_TRY(const std::optional<keeper::Confined> remade,
               co_await keepers_.ask<keeper::Confined>(id, keeper::Remake{}));
  if (!remade) co_return fail(Errc::process_lost, keepers_.name_of(id) + ": its keeper has ended");
  fault_point("linux.remade");
  const keepers::KeptFolder folder = keepers_.folder_of(id);
  BERTH_CO_DO(co_await offload(keepers_.pool(), [folder, confined = *remade]() -> Result<> {
    BERTH_DO(keepers::remove_all_output(folder));
    return note_remade(folder.path + facts_file, confined);
  }));
  co_return co_await keepers_.renew(id, idle_ms);
}

Task<> Linux::end_all_inside(std::string id) {
  BERTH_CO_TRY(const std::optional<keeper::Done> done,
               co_await keepers_.ask<keeper::Done>(id, keeper::Empty{}));
  if (done) co_return Result<>{};
  co_return fail(Errc::process_lost, keepers_.name_of(id) + ": its keeper has ended");
}

}  // namespace berth::places
