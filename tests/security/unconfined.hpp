#pragma once

#include "security/expectations.hpp"

#include <string>
#include <vector>

namespace berth::security_test {

// Runs the hostile program without a sandbox, as the table requires, and returns its verdict like
// Deed::verdict.
std::string run_unconfined(const std::string& hostile, Shown shown,
                           const std::vector<std::string>& words, const std::string& secret);

}  // namespace berth::security_test
