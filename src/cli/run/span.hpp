#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace berth::cli {

// "30s", "500ms", "1h30m", "2d" in milliseconds. The error names the flag.
Result<std::int64_t> parse_span_ms(const std::string& text, const std::string& flag);
// "412 ms", "3.4 s", "2 min 5 s", "1 h 12 min".
std::string span_text(std::int64_t ms);

}  // namespace berth::cli
