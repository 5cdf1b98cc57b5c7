#pragma once

#include "plugins/conformance/report.hpp"
#include "plugins/conformance/subject.hpp"

#include <functional>
#include <string>
#include <vector>

namespace berth::plugins::conformance {

// Told of each check as soon as it is over.
using Watcher = std::function<void(const CheckResult&)>;

// Every check that there is, in the order in which they run.
std::vector<std::string> check_names();

// Examines a plugin from outside, as any host sees it: the contract, every hook that it advertises,
// and what happens when either side fails. Takes sandboxes of the provider, and gives them back.
// A plugin that breaks a rule is no error but a report that says so; an error is a folder without a
// plugin. Blocks, and makes this process the parent of what workers leave behind.
Result<Report> examine(const Request& request, const Watcher& watcher);

}  // namespace berth::plugins::conformance
