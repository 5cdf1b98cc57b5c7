#include "plugin_kit/kit.hpp"

#include "plugin_kit/checks.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <csignal>

namespace berth::plugin_kit {
namespace {

std::vector<Check> all_checks() {
  std::vector<Check> all;
  for (auto* const group : {start_checks, wire_checks, config_checks, lease_checks, command_checks,
                            optional_checks, fault_checks}) {
    for (Check& check : group()) all.push_back(std::move(check));
  }
  return all;
}

constexpr std::string_view manifest_check = "manifest.valid";

CheckResult run(Bench& bench, const Check& check, bool has_started) {
  CheckResult result{.check = check.name, .promise = check.promise, .weight = check.weight};
  const auto began = std::chrono::steady_clock::now();
  const auto missing = std::ranges::find_if(
      check.needs, [&](const std::string& method) { return !bench.has(method); });
  Outcome outcome;
  if (!has_started) {
    outcome = skipped("the worker does not start");
  } else if (missing != check.needs.end()) {
    outcome = skipped(*missing + " is not advertised");
  } else {
    outcome = check.run(bench);
  }
  result.verdict = outcome.verdict;
  result.finding = std::move(outcome.finding);
  if (result.verdict == Verdict::failed) result.mend = check.mend;
  result.took_ms =
      std::chrono::duration_cast<Limit>(std::chrono::steady_clock::now() - began).count();
  return result;
}

// The manifest is a check too; the others need it.
CheckResult manifest_result(const Result<Subject>& subject) {
  CheckResult result{.check = std::string{manifest_check},
                     .promise = "the manifest keeps the rules of the format"};
  if (subject) return result;
  result.verdict = Verdict::failed;
  result.finding = subject.error().message;
  for (const Issue& issue : subject.error().issues) {
    result.finding += "; " + issue.path + ": " + issue.message;
  }
  result.mend = subject.error().remedy;
  return result;
}

}  // namespace

std::vector<std::string> check_names() {
  std::vector<std::string> names{std::string{manifest_check}};
  for (const Check& check : all_checks()) names.push_back(check.name);
  return names;
}

Result<Report> examine(const Request& request, const Watcher& watcher) {
  std::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  BERTH_TRY(const bj::value document, read_document(request));
  Result<Subject> subject = make_subject(request, document);
  Report report;
  report.checks.push_back(manifest_result(subject));
  watcher(report.checks.back());
  if (!subject) {
    sum_up(report);
    return report;
  }
  report.plugin = subject->manifest.id;
  report.version = subject->manifest.version;
  report.driver = subject->driver.driver_key;
  Bench bench{*std::move(subject)};
  bool has_started = true;
  for (const Check& check : all_checks()) {
    const bool is_first = check.name == "start.initialize";
    const bool is_last = check.name.starts_with("left.");
    if (request.only && !is_first && !is_last &&
        check.name.find(*request.only) == std::string::npos) {
      continue;
    }
    report.checks.push_back(run(bench, check, has_started));
    watcher(report.checks.back());
    if (is_first) has_started = report.checks.back().verdict == Verdict::passed;
  }
  sum_up(report);
  return report;
}

}  // namespace berth::plugin_kit
