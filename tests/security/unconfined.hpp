#pragma once

#include "security/expectations.hpp"

#include <string>
#include <vector>

namespace berth::security_test {

// Runs the hostile program without a sandbox, as the table says that it is to be shown, and answers
// its verdict as Deed::verdict does.
std::string run_unconfined(const std::string& hostile, Shown shown,
                           const std::vector<std::string>& words, const std::string& secret);

}  // namespace berth::security_test
