#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Finds the ports with a listener in a sandbox, from outside: no command runs inside for it.
namespace berth::places {

// From the kernel's TCP socket tables, in ascending order, without duplicates.
std::vector<std::uint16_t> ports_in(std::string_view tables);

// Without Berth's own ports there. Blocks.
Result<std::vector<std::uint16_t>> ports_inside(const std::string& keeper_folder);

}  // namespace berth::places
