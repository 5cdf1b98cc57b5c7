// Operations on a sandbox as a whole; snapshots.cpp has what they do on the disk.
#include "base/async/offload.hpp"
#include "places/linux/lease_metadata.hpp"
#include "places/linux/linux.hpp"

namespace berth::places {
namespace {

using keepers::KeeperLink;

// Longer than the kernel may take to stop every process.
constexpr KeeperLink::Limit freeze_limit = KeeperLink::usual_limit;

std::unexpected<Error> is_gone(const std::string& name) {
  return fail(Errc::process_lost, name + ": is gone", "release its lease");
}

}  // namespace

Result<LiveSandbox> Linux::live(const PlaceRef& lease) const {
  const bj::object config = config_of(lease);
  BERTH_DO(check_config_is_for(core::linux_provider, config));
  BERTH_TRY(core::LinuxConfig made_with, core::parse_linux_config(config));
  const std::string id = folder_id_of(lease);
  return LiveSandbox{.name = keepers_.name_of(id),
                     .keeper_folder = keepers_.folder_of(id).keeper(),
                     .config = std::move(made_with)};
}

Task<CapturedTemplate> Linux::capture_template(const PlaceRef& lease,
                                               const CaptureTemplate& request) {
  BERTH_CO_TRY(LiveSandbox sandbox, live(lease));
  co_return co_await offload(keepers_.pool(),
                             [images = images_, sandbox = std::move(sandbox), request] {
                               return capture_sandbox(sandbox, images, request);
                             });
}

Task<bool> Linux::delete_template(const PlaceRef& place, const DeleteTemplate& request) {
  BERTH_CO_DO(check_config_is_for(core::linux_provider, place.config));
  co_return co_await offload(
      keepers_.pool(), [images = images_, request] { return delete_captured(images, request); });
}

Task<std::vector<core::TemplateId>> Linux::held_templates() {
  co_return co_await offload(keepers_.pool(), [images = images_] { return images.templates(); });
}

Task<Changes> Linux::changes(const PlaceRef& lease) {
  BERTH_CO_TRY(LiveSandbox sandbox, live(lease));
  co_return co_await offload(keepers_.pool(), [images = images_, sandbox = std::move(sandbox)] {
    return changes_of(sandbox, images);
  });
}

Task<> Linux::freeze(const PlaceRef& lease) {
  BERTH_CO_TRY(const LiveSandbox sandbox, live(lease));
  BERTH_CO_TRY(const auto done, co_await keepers_.ask<keeper::Done>(
                                    folder_id_of(lease), keeper::Freeze{}, freeze_limit));
  if (!done) co_return is_gone(sandbox.name);
  co_return Result<>{};
}

Task<> Linux::thaw(const PlaceRef& lease) {
  BERTH_CO_TRY(const LiveSandbox sandbox, live(lease));
  BERTH_CO_TRY(const auto done, co_await keepers_.ask<keeper::Done>(folder_id_of(lease),
                                                                    keeper::Thaw{}, freeze_limit));
  if (!done) co_return is_gone(sandbox.name);
  co_return Result<>{};
}

}  // namespace berth::places
