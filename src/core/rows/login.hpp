#pragma once

#include "base/names.hpp"

namespace berth::core {

// The agent programs that have their own login.
BOOST_DEFINE_ENUM_CLASS(LoginCommand, claude, codex)

}  // namespace berth::core
