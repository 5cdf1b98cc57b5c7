#pragma once

#include "base/result.hpp"
#include "cli/config.hpp"

namespace berth::cli {

// The keeper program of this server: as configured, or beside this program. Fails with
// config_invalid when it is missing.
Result<std::string> keeper_program(const Settings& settings);

}  // namespace berth::cli
