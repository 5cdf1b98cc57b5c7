// Operations on a sandbox as a whole; snapshots.cpp has what they do on the disk.
#include "base/async/offload.hpp"
#include "places/linux/linux.hpp"

namespace berth::providers {
namespace {

using execution::KeeperLink;

// Longer than the kernel may take to stop every process.
constexpr KeeperLink::Limit freeze_limit = KeeperLink::usual_limit;

std::unexpected<Error> is_gone(const std::string& name) {
  return fail(Errc::process_lost, name + ": is gone", "release its lease");
}

}  // namespace

Result<LiveSandbox> Linux::live(const bj::object& config, const SandboxName& name) const {
  BERTH_DO(check_config_is_for(core::linux_provider, config));
  BERTH_TRY(core::LinuxConfig made_with, core::parse_linux_config(config));
  std::string id = name.key ? name.key->str() : name.provider_lease_id.value_or("");
  BERTH_DO(core::SandboxId::parse(id));  // only a key names a folder
  return LiveSandbox{.name = keepers_.name_of(id),
                     .keeper_folder = keepers_.folder_of(id).keeper(),
                     .config = std::move(made_with)};
}

Task<execution::CapturedTemplate> Linux::capture_template(bj::object config, SandboxName name,
                                                          execution::CaptureTemplate request) {
  BERTH_CO_TRY(LiveSandbox sandbox, live(config, name));
  co_return co_await offload(keepers_.pool(),
                             [images = images_, sandbox = std::move(sandbox), request] {
                               return capture_sandbox(sandbox, images, request);
                             });
}

Task<bool> Linux::delete_template(bj::object config, execution::DeleteTemplate request) {
  BERTH_CO_DO(check_config_is_for(core::linux_provider, config));
  co_return co_await offload(keepers_.pool(), [images = images_, request = std::move(request)] {
    return delete_captured(images, request);
  });
}

Task<std::vector<core::TemplateId>> Linux::held_templates() {
  co_return co_await offload(keepers_.pool(), [images = images_] { return images.templates(); });
}

Task<execution::Changes> Linux::changes(bj::object config, SandboxName name) {
  BERTH_CO_TRY(LiveSandbox sandbox, live(config, name));
  co_return co_await offload(keepers_.pool(), [images = images_, sandbox = std::move(sandbox)] {
    return changes_of(sandbox, images);
  });
}

Task<> Linux::freeze(bj::object config, SandboxName name) {
  BERTH_CO_TRY(const LiveSandbox sandbox, live(config, name));
  const std::string id = name.key ? name.key->str() : *name.provider_lease_id;
  BERTH_CO_TRY(const auto done,
               co_await keepers_.ask<keeper::Done>(id, keeper::Freeze{}, freeze_limit));
  if (!done) co_return is_gone(sandbox.name);
  co_return Result<>{};
}

Task<> Linux::thaw(bj::object config, SandboxName name) {
  BERTH_CO_TRY(const LiveSandbox sandbox, live(config, name));
  const std::string id = name.key ? name.key->str() : *name.provider_lease_id;
  BERTH_CO_TRY(const auto done,
               co_await keepers_.ask<keeper::Done>(id, keeper::Thaw{}, freeze_limit));
  if (!done) co_return is_gone(sandbox.name);
  co_return Result<>{};
}

}  // namespace berth::providers
