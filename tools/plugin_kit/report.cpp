#include "plugin_kit/report.hpp"

namespace berth::plugin_kit {

void sum_up(Report& report) {
  constexpr std::int64_t required_points = 3;
  std::int64_t earned = 0;
  std::int64_t possible = 0;
  report.passed = report.failed = report.skipped = 0;
  report.conforms = !report.checks.empty();
  for (const CheckResult& check : report.checks) {
    const std::int64_t points = check.weight == Weight::required ? required_points : 1;
    if (check.verdict == Verdict::skipped) {
      ++report.skipped;
      continue;
    }
    possible += points;
    if (check.verdict == Verdict::passed) {
      ++report.passed;
      earned += points;
    } else {
      ++report.failed;
      report.conforms = report.conforms && check.weight != Weight::required;
    }
  }
  report.score = possible == 0 ? 0 : earned * 100 / possible;
}

}  // namespace berth::plugin_kit
