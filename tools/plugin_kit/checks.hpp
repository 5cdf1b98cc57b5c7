#pragma once

#include "plugin_kit/bench.hpp"

#include <functional>
#include <string>
#include <vector>

namespace berth::plugin_kit {

struct Check {
  std::string name;     // "wire.garbage"
  std::string promise;  // a sentence that can be false
  std::string mend;     // what its author has to change
  std::function<Outcome(Bench&)> run;
  Weight weight = Weight::required;
  // Methods that the check requires.
  std::vector<std::string> needs = {};
};

// In the order in which they run. Those that end the worker come last.
std::vector<Check> start_checks();
std::vector<Check> wire_checks();
std::vector<Check> config_checks();
std::vector<Check> lease_checks();
std::vector<Check> command_checks();
std::vector<Check> optional_checks();
std::vector<Check> fault_checks();

}  // namespace berth::plugin_kit
