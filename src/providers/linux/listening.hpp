#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Which ports something in a sandbox listens on, read from outside: no command runs inside for it.
namespace berth::providers {

// Of the kernel's tables of TCP sockets, in ascending order, each once.
std::vector<std::uint16_t> ports_in(std::string_view tables);

// Without the doors that Berth itself has there. Blocks.
Result<std::vector<std::uint16_t>> ports_inside(const std::string& keeper_folder);

}  // namespace berth::providers
