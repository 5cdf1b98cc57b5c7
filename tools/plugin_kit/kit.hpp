#pragma once

#include "plugin_kit/report.hpp"
#include "plugin_kit/subject.hpp"

#include <functional>
#include <string>
#include <vector>

namespace berth::plugin_kit {

// Called as soon as each check has ended.
using Watcher = std::function<void(const CheckResult&)>;

// All checks, in the order in which they run.
std::vector<std::string> check_names();

// Examines a plugin from outside, as any host sees it: the contract, every advertised hook, and
// what happens when either side fails. Creates provider sandboxes, and releases them. A plugin that
// breaks a rule gets a failing report, not an error; a folder without a plugin is an error. Blocks,
// and makes this process the subreaper of the workers' orphans.
Result<Report> examine(const Request& request, const Watcher& watcher);

}  // namespace berth::plugin_kit
