#include "base/offload.hpp"
#include "providers/linux/inside.hpp"
#include "providers/linux/lease_metadata.hpp"
#include "providers/linux/linux.hpp"

#include <unistd.h>

// What becomes of a sandbox between one lease and the next.
namespace berth::providers {
namespace {

// Longer than a sandbox waits for its next lease before the server destroys it, so that it goes by
// itself only when there is no server.
constexpr std::int64_t idle_ms = 45LL * 60 * 1000;

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
  // First, so that nobody is left who would fill the folders again.
  BERTH_CO_DO(co_await end_all_inside(id));
  // From outside: neither an image without a shell nor a great many names are in the way.
  const execution::KeptFolder folder = keepers_.folder_of(id);
  BERTH_CO_DO(co_await offload(keepers_.pool(), [folder]() -> Result<> {
    BERTH_DO(execution::remove_all_output(folder));
    return empty_folders_inside(folder.keeper(), {"/tmp", "/dev/shm"});
  }));
  co_return co_await keepers_.renew(id, idle_ms);
}

Task<> Linux::end_all_inside(std::string id) {
  BERTH_CO_TRY(const std::optional<keeper::Done> done,
               co_await keepers_.ask<keeper::Done>(id, keeper::Empty{}));
  if (done) co_return Result<>{};
  co_return fail(Errc::process_lost, keepers_.name_of(id) + ": its keeper has ended");
}

}  // namespace berth::providers
