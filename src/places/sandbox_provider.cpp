#include "places/sandbox_provider.hpp"

#include "core/config/environment_config.hpp"

namespace berth::places {

Result<> check_config_is_for(std::string_view own_key, const bj::object& config) {
  const std::string given = core::provider_of(config);
  if (given == own_key) return {};
  return fail(Errc::validation_failed, "Sandbox provider \"" + std::string{own_key} +
                                           "\" received config for provider \"" + given + "\".");
}

ProbeReport report_of(const Result<Verdict>& verdict, std::string_view provider,
                      std::chrono::steady_clock::time_point begun) {
  const auto took = std::chrono::steady_clock::now() - begun;
  ProbeStep step{
      .name = "provider",
      .duration_ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count()};
  ProbeReport report{.driver = core::DriverKind::sandbox};
  if (verdict) {
    step.ok = verdict->ok;
    step.message = verdict->summary;
    report.details = verdict->details;
    report.steps = verdict->steps;
  } else {
    step.message = verdict.error().message;
    step.code = name_of(verdict.error().code);
    step.remedy = verdict.error().remedy;
    report.details = bj::object{{"provider", provider}};
  }
  report.ok = step.ok;
  report.summary = step.message;
  if (report.steps.empty()) report.steps.push_back(std::move(step));
  return report;
}

}  // namespace berth::places
