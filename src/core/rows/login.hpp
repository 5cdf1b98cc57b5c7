#pragma once

#include "base/names.hpp"

namespace berth::core {

// The programs of agents that have a login of their own.
BOOST_DEFINE_ENUM_CLASS(LoginCommand, claude, codex)

}  // namespace berth::core
