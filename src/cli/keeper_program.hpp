#pragma once

#include "base/result.hpp"
#include "cli/config.hpp"

namespace berth::cli {

// The keeper that holds the commands of this server: as configured, or beside this program.
// config_invalid when it is not there.
Result<std::string> keeper_program(const Settings& settings);

}  // namespace berth::cli
