#include "app/doctor.hpp"

#include "base/async/offload.hpp"
#include "cli/doctor/walls.hpp"

#include <iterator>

namespace berth::app {

Task<std::vector<api::Finding>> Doctor::examine() const {
  const cli::doctor::Machine machine{
      .settings = settings_, .config_error = {}, .server_url = "http://" + settings_.listen};
  auto found = co_await offload(thread_, [&machine] { return cli::doctor::examine(machine); });
  BERTH_CO_TRY(const auto kept, co_await kept_.get({}));
  found.push_back(
      cli::doctor::judge_retention(kept.value.run_retention_days, kept.value.log_retention_days));
  std::vector<api::Finding> shown;
  for (const cli::doctor::Finding& finding : found) {
    shown.push_back(
        {finding.check, std::string{name_of(finding.verdict)}, finding.says, finding.remedy});
  }
  co_return shown;
}

Task<std::vector<core::Wall>> Doctor::walls(engine::Walls& known) const {
  const cli::doctor::Machine machine{
      .settings = settings_, .config_error = {}, .server_url = "http://" + settings_.listen};
  std::vector<core::Wall> all =
      co_await offload(thread_, [&machine] { return cli::doctor::examine_walls(machine); });
  BERTH_CO_TRY(std::vector<core::Wall> stored, co_await known.list());
  std::ranges::move(stored, std::back_inserter(all));
  co_return all;
}

}  // namespace berth::app
