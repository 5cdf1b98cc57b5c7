#include "app/doctor.hpp"

#include "base/offload.hpp"
#include "cli/doctor/check.hpp"

namespace berth::app {

Task<std::vector<http::Finding>> Doctor::examine() const {
  const cli::doctor::Machine machine{
      .settings = settings_, .config_error = {}, .server_url = "http://" + settings_.listen};
  const auto found =
      co_await offload(thread_, [&machine] { return cli::doctor::examine(machine); });
  std::vector<http::Finding> shown;
  for (const cli::doctor::Finding& finding : found) {
    shown.push_back(
        {finding.check, std::string{name_of(finding.verdict)}, finding.says, finding.remedy});
  }
  co_return shown;
}

}  // namespace berth::app
