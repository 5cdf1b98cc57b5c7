#pragma once

#include "base/json/json.hpp"

#include <boost/describe/enum.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace berth::plugin_kit {

// A host cannot work with a plugin that fails a required check; the advised checks make it a good
// one.
enum class Weight { required, advised };
BOOST_DESCRIBE_ENUM(Weight, required, advised)

enum class Verdict { passed, failed, skipped };
BOOST_DESCRIBE_ENUM(Verdict, passed, failed, skipped)

struct CheckResult {
  std::string check;  // "wire.garbage"
  std::string promise;
  Weight weight = Weight::required;
  Verdict verdict = Verdict::passed;
  std::string finding = {};  // what was seen instead, or why the check was skipped
  std::string mend = {};     // what to change, after a failure
  std::int64_t took_ms = 0;
};
BOOST_DESCRIBE_STRUCT(CheckResult, (), (check, promise, weight, verdict, finding, mend, took_ms))

struct Report {
  std::string plugin;
  std::string version;
  std::string driver;
  bool conforms = false;   // every required check that could run has passed
  std::int64_t score = 0;  // of 100; a required check counts three times an advised one
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;
  std::vector<CheckResult> checks;
};
BOOST_DESCRIBE_STRUCT(Report, (),
                      (plugin, version, driver, conforms, score, passed, failed, skipped, checks))

// Counts the check results.
void sum_up(Report& report);

}  // namespace berth::plugin_kit
