#pragma once

// What most files of the keeper include anyway, parsed once. No file may rely on it.
#include "base/result.hpp"
#include "keeper/protocol/messages.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>
