#pragma once

#include "base/json.hpp"

#include <string>
#include <vector>

// What a sandbox that was made lacks, by the isolation that its provider tells of it.
namespace berth::cli {

// Fails where a limit that the config of the sandbox names is not in force, unless the config says
// how little isolation will do.
Result<> expect_limits_in_force(const bj::object& config, const bj::object& isolation);
// A line for each cause: what is missing for it, why, and what would mend that.
std::vector<std::string> shortfalls_of(const bj::object& isolation);

}  // namespace berth::cli
